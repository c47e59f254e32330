"""Settings: layers, and errors that say where."""

import os
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from kb.errors import ConfigError
from kb.model.config import LlmSettings, ProjectFiles, SearchSettings, Settings, load
from kb.model.config.lines import line_of


def test_without_layers_the_defaults_hold(tmp_path: Path) -> None:
    """Files that are absent are passed over."""
    assert load([tmp_path / "none.toml"], env={}) == Settings()


def test_later_layers_win(tmp_path: Path) -> None:
    """Defaults, then files in order, then KB_CFG, then overrides in order."""
    user, home, extra = (tmp_path / name for name in ("user.toml", "home.toml", "extra.toml"))
    user.write_text("[search]\nrrf_k = 1\nmmr_crowd = 1\ncandidates = 1\nfeedback_passages = 1\n")
    home.write_text("[search]\nrrf_k = 2\nmmr_crowd = 2\ncandidates = 2\n")
    extra.write_text("[search]\nmmr_crowd = 3\n")
    env = {"KB_CFG": f"search.candidates=3\n{extra}\n"}
    said = load([user, home], ["search.candidates=4"], env=env).search
    assert (said.feedback_passages, said.rrf_k, said.mmr_crowd, said.candidates) == (1, 2, 3, 4)
    assert said.entity_boost == Settings().search.entity_boost


@pytest.mark.parametrize(
    ("override", "section", "name", "value"),
    [
        ("search.rrf_k=7", "search", "rrf_k", 7),
        ("search.mmr_similarity=0.5", "search", "mmr_similarity", 0.5),
        ("search.fusion=plain", "search", "fusion", "plain"),
        ('search.fusion="plain"', "search", "fusion", "plain"),
        ("embed.query_prefix=query: a=b", "embed", "query_prefix", "query: a=b"),
        ("embed.query_prefix=", "embed", "query_prefix", ""),
        ('ingest.extensions=["a"]', "ingest", "extensions", ("a",)),
        ("embed.scripts+=Han", "embed", "scripts", ("Han",)),
        ('embed.scripts+=["Han", "Latin"]', "embed", "scripts", ("Han", "Latin")),
    ],
)
def test_assignments(override: str, section: str, name: str, value: object) -> None:
    """KEY=VALUE sets; a value is TOML where it is, else the text itself; += adds to a list."""
    assert getattr(getattr(load([], [override], env={}), section), name) == value


def test_adding_keeps_what_was_there() -> None:
    """KEY+=VALUE adds to the default, and to what an earlier layer said."""
    said = load([], ["ingest.extensions+=org", "ingest.extensions+=rst"], env={})
    assert said.ingest.extensions == (*Settings().ingest.extensions, "org", "rst")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("search.rrf_k=0", "search.rrf_k must be a whole number of at least 1, not 0"),
        ("search.rrf_k=much", "search.rrf_k must be a whole number of at least 1, not 'much'"),
        ("search.rrf_kk=1", "unknown setting search.rrf_kk; did you mean search.rrf_k?"),
        ("nothing.at=1", "unknown setting nothing"),
        ("embed.kind=a b", "embed.kind must be a name of letters, digits"),
        ("search=1", "search must be a table of settings, not 1"),
        ("search.rrf_k.deep=1", "search.rrf_k must be a whole number"),
    ],
)
def test_a_wrong_assignment_is_named(override: str, said: str) -> None:
    """The error gives the flag as it was typed, the key and what is wrong."""
    with pytest.raises(ConfigError) as raised:
        load([], [override], env={})
    assert str(raised.value).startswith(f"--cfg {override}: ")
    assert said in str(raised.value)
    assert raised.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("[search]\n\nrrf_k = 0\n", 3, "search.rrf_k"),
        ("# x\n[search]\nrrf_kk = 1\n", 3, "unknown setting search.rrf_kk"),
        ("a = 1\n[serach]\n", 1, "unknown setting a"),
        ('[embed]\n"kind" = "a b"\n', 2, "embed.kind"),
        ("search.rrf_k = 0\n", 1, "search.rrf_k"),
        ("[search]\nrrf_k = \n", 2, "not TOML"),
    ],
)
def test_a_wrong_file_is_named_with_its_line(
    tmp_path: Path, text: str, line: int, said: str
) -> None:
    """The error gives file, line and key."""
    file = tmp_path / "kb.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as raised:
        load([file], env={})
    message = str(raised.value)
    assert message.startswith(str(file))
    assert f"kb.toml:{line}" in message or f"line {line}" in message
    assert said in message


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A file named by a flag must be there; bytes that are no text, and folders, are named."""
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    for override, said in (
        (str(tmp_path / "none.toml"), "neither KEY=VALUE nor a file"),
        (str(binary), "not UTF-8"),
        (str(tmp_path), "cannot be read (Is a directory)"),
    ):
        with pytest.raises(ConfigError, match=said.replace("(", r"\(").replace(")", r"\)")):
            load([], [override], env={})


def test_an_overlap_that_fits_a_later_size() -> None:
    """A file may lower the size and the overlap together; the pair is what is judged."""
    said = load([], ["chunk.overlap_tokens=8", "chunk.tokens_max=32"], env={})
    assert (said.chunk.tokens_max, said.chunk.overlap_tokens) == (32, 8)
    said = load([], ["chunk.tokens_max=32", "chunk.overlap_tokens=8"], env={})
    assert (said.chunk.tokens_max, said.chunk.overlap_tokens) == (32, 8)
    with pytest.raises(ConfigError, match="is over a quarter of tokens_max"):
        load([], ["chunk.tokens_max=32"], env={})


def test_settings_are_frozen() -> None:
    """What was read once is not changed."""
    with pytest.raises(AttributeError):
        Settings().search.rrf_k = 1  # type: ignore[misc]
    assert msgspec.convert(msgspec.to_builtins(Settings()), Settings) == Settings()


TWO_TOPICS = """\
# [kb.topic.c]
[kb.topic.a]
title = "A"
description = '''
[kb.topic.b]
subjects = 1
'''
subjects = "a"

[kb.topic.b]
title = "B"
subjects = "b"
learned = [
    "x",
    "]",
]
"""


def test_topics_are_merged_by_key_in_order(tmp_path: Path) -> None:
    """Later layers win key by key, and topics stand in the order in which they came first."""
    first, second = tmp_path / "a.toml", tmp_path / "b.toml"
    first.write_text(TWO_TOPICS)
    second.write_text("[kb.topic.c]\nsubjects = 'c'\n[kb.topic.a]\ntitle = 'AA'\nlearned = ['y']\n")
    said = load([first, second], ["kb.topic.b.enable=false"], env={}).kb.topic
    assert list(said) == ["a", "b", "c"]
    assert (said["a"].title, said["a"].subjects, said["a"].learned) == ("AA", "a", ("y",))
    assert (said["b"].title, said["b"].enable, said["b"].learned) == ("B", False, ("x", "]"))
    assert said["a"].defined_at == f"{first}:8"
    assert said["c"].defined_at == f"{second}:2"


def test_adding_to_a_topic(tmp_path: Path) -> None:
    """KEY+=VALUE adds a pattern to what a file said, and to none."""
    file = tmp_path / "a.toml"
    file.write_text(TWO_TOPICS)
    adding = ["kb.topic.b.learned+=m/*", "kb.topic.a.learned+=n"]
    said = load([file], adding, env={}).kb.topic
    assert (said["b"].learned, said["a"].learned) == (("x", "]", "m/*"), ("n",))


@pytest.mark.parametrize(
    ("was", "now", "line", "said"),
    [
        (
            'title = "B"',
            'titel = "B"',
            11,
            "unknown setting kb.topic.b.titel; did you mean kb.topic",
        ),
        ('title = "B"', "title = 1", 11, "kb.topic.b.title must be text of at most 200 characters"),
        ('title = "A"', 'title = ""', 3, "kb.topic.a.title must be text"),
        ('title = "B"', "enable = 1", 11, "kb.topic.b.enable must be true or false, not 1"),
        ('subjects = "b"', "subjects = []", 12, "kb.topic.b.subjects must be a folder, not []"),
        ('    "x",', "    1,", 13, "kb.topic.b.learned[0] must be text"),
        ("learned = [", "disabled = 1\nlearned = [", 13, "kb.topic.b.disabled must be a list"),
        ('subjects = "b"', "", 10, "kb.topic.b.subjects is missing; set it to the folder"),
        ('subjects = "b"', 'subjects = ""', 12, "kb.topic.b.subjects must be a folder"),
        ('title = "B"', 'defined_at = "x"', 11, "unknown setting kb.topic.b.defined_at"),
        ("[kb.topic.b]\ntitle", '[kb.topic."b/c"]\ntitle', 10, "kb.topic.b/c: an id has letters"),
        (
            "[kb.topic.b]\ntitle",
            "[kb.topics.b]\ntitle",
            10,
            "unknown setting kb.topics; did you",
        ),
        ('title = "B"', "index = 'no'", 11, "kb.topic.b.index must be true or false, not 'no'"),
    ],
)
def test_a_wrong_topic_is_named_with_its_line(
    tmp_path: Path, was: str, now: str, line: int, said: str
) -> None:
    """The line is that of the topic which is wrong, though others have the same key."""
    file = tmp_path / "config.toml"
    assert TWO_TOPICS.count(was) >= 1
    at = TWO_TOPICS.rindex(was)
    file.write_text(TWO_TOPICS[:at] + now + TWO_TOPICS[at + len(was) :])
    with pytest.raises(ConfigError) as raised:
        load([file], env={})
    assert str(raised.value).startswith(f"{file}:{line}: ")
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("a.b = 1\n[c]\nb = 2\n", ("c", "b"), 3),
        ("a = { b = { c = 1 } }\n", ("a", "b", "c"), 1),
        ("[a]\n[[a.b]]\nc = 1\n", ("a", "b", "c"), 2),
        ('["a.b"]\n"c d" = 1\n', ("a.b", "c d"), 2),
        ("[a]\r\n\r\nb = 1\r\n", ("a", "b"), 3),
        ('x = """\n[a]\nb = 1\n"""\n[a]\nb = 2\n', ("a", "b"), 6),
        ("x = [\n  [1,\n 2],\n]\n[a]  # b\nb = 2\n", ("a", "b"), 6),
        ("[a]\nb = 1\n[a.c]\nb = 1\n", ("a", "c", "b"), 4),
        ("[a]\nb = 1\n", ("a", "x"), 1),
        ("[a]\nb = 1\n", ("x",), None),
    ],
)
def test_the_line_of_a_key(text: str, path: tuple[str, ...], line: int | None) -> None:
    """Quoted, dotted and inline keys, and values of several lines."""
    assert line_of(text, path) == line


def test_a_topic_that_is_off_may_be_half_said(tmp_path: Path) -> None:
    """It can be turned off where no layer defines it; an assignment that misses is named."""
    assert load([], ["kb.topic.x.enable=false"], env={}).kb.topic["x"].enable is False
    with pytest.raises(ConfigError, match=r"title=X: kb.topic.x.subjects is missing"):
        load([], ["kb.topic.x.title=X"], env={})


def test_a_name_is_looked_up_on_the_load_path(tmp_path: Path) -> None:
    """The first folder that has NAME.toml, or else a file by that very name."""
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, size in ((one, 1), (two, 2)):
        (folder / "sub").mkdir(parents=True)
        (folder / "sub/x.toml").write_text(f"[search]\nrrf_k = {size}\n")
    (two / "only.toml").write_text("[search]\nrrf_k = 3\n")
    plain = tmp_path / "plain"
    plain.write_text("[search]\nrrf_k = 4\n")
    for name, size in (("sub/x", 1), ("only", 3), (str(plain), 4)):
        assert load([], [name], env={}, load_path=[one, two]).search.rrf_k == size
    assert load([], [], env={"KB_CFG": "only"}, load_path=[one, two]).search.rrf_k == 3


@pytest.mark.parametrize(
    "name", ["../secret", "sub/../../secret", "{root}/secret", "none", "a" * 5_000]
)
def test_a_name_leads_nowhere_else(tmp_path: Path, name: str) -> None:
    """Not up, not away, and where there is no such file the folders are named."""
    (tmp_path / "config.d/sub").mkdir(parents=True)
    (tmp_path / "secret.toml").write_text("[search]\nrrf_k = 1\n")
    with pytest.raises(ConfigError, match="neither KEY=VALUE nor a file, nor ") as raised:
        load([], [name.format(root=tmp_path)], env={}, load_path=[tmp_path / "config.d"])
    assert f"in {tmp_path}/config.d" in str(raised.value)


def _of_project(root: Path, *accepted: bytes) -> ProjectFiles:
    home = root / ".kb"
    (home / "config.d").mkdir(parents=True, exist_ok=True)
    return ProjectFiles(home=home, root=root, accepts=lambda data: data in accepted)


_HARMFUL = """\
[llm]
provider = "openai"
base_url = "http://127.0.0.1:1"
[embed]
model = ".kb/model"
[fetch]
allow = ["10.0.0.1"]
[notebook]
path = "store"
push = true
[compact]
tombstone_days = 0
[search]
rrf_k = 7
candidates = 1_000_000
[kb.topic.x]
subjects = "docs"
learned = ["**"]
"""


@pytest.mark.parametrize("way", ["file", "name", "path", "variable"])
def test_a_project_says_what_is_harmless(tmp_path: Path, way: str) -> None:
    """By every way that its files are read: the rest is left out and named, but once accepted."""
    project = _of_project(tmp_path)
    file = project.home / ("kb.toml" if way == "file" else "config.d/x.toml")
    file.write_text(_HARMFUL)
    files = [file] if way == "file" else []
    overrides = {"name": ["x"], "path": [str(file)]}.get(way, [])
    env = {"KB_CFG": "x"} if way == "variable" else {}
    said: list[str] = []
    path = [project.home / "config.d"]

    def loaded(project: ProjectFiles | None) -> Settings:
        return load(files, overrides, env, load_path=path, project=project, warn=said.append)

    found = loaded(project)
    assert found.search == SearchSettings(rrf_k=7)
    assert (found.kb.topic["x"].learned, found.kb.topic["x"].defined_by) == ((), "stranger")
    plain = structs.replace(found, search=SearchSettings(), kb=Settings().kb)
    assert plain == Settings()
    (line,) = said
    for key in ("llm.base_url", "embed.model", "fetch.allow", "notebook.path", "compact"):
        assert key in line
    assert f"`kb trust {tmp_path}`" in line
    accepted = loaded(_of_project(tmp_path, file.read_bytes()))
    mine = loaded(None)
    assert said == [line]
    assert accepted.llm == mine.llm != LlmSettings()
    assert accepted.kb.topic["x"].learned == ("**",)
    assert accepted.kb.topic["x"].defined_by == "project"


def test_whose_packs_are_good_says_the_user_alone(tmp_path: Path) -> None:
    """Not even a file that was accepted adds a key."""
    project = _of_project(tmp_path)
    file = project.home / "kb.toml"
    file.write_text(f'[pack]\ntrusted_keys = ["{"A" * 43}="]\n')
    said: list[str] = []
    accepting = _of_project(tmp_path, file.read_bytes())
    for one in (project, accepting):
        assert load([file], env={}, project=one, warn=said.append).pack.trusted_keys == ()
    assert len(said) == 2


def test_a_name_is_the_users_own_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the project's file of that name nor one in the working directory comes before."""
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    for folder, size in ((mine, 1), (theirs, 2)):
        folder.mkdir()
        (folder / "x.toml").write_text(f"[search]\nrrf_k = {size}\n")
    (tmp_path / "x").write_text("[search]\nrrf_k = 3\n")
    monkeypatch.chdir(tmp_path)
    assert load([], ["x"], env={}, load_path=[mine, theirs]).search.rrf_k == 1
    assert load([], ["./x"], env={}, load_path=[mine, theirs]).search.rrf_k == 3


def test_a_project_leaves_the_users_topics_alone(tmp_path: Path) -> None:
    """It cannot point one elsewhere, or show what the user keeps from everyone."""
    project = _of_project(tmp_path)
    mine, theirs = tmp_path / "mine.toml", project.home / "kb.toml"
    mine.write_text('[kb.topic.x]\nsubjects = "/mine"\nlearned = ["*"]\nenable = false\n')
    theirs.write_text('[kb.topic.x]\nsubjects = "docs"\nenable = true\n')
    said: list[str] = []
    files = structs.replace(project, root=project.home)
    topic = load([mine, theirs], env={}, project=files, warn=said.append).kb.topic["x"]
    assert (topic.subjects, topic.enable) == ("/mine", False)
    assert "kb.topic.x comes with the project" in said[0]


def test_a_projects_file_is_a_plain_file_of_its_own(tmp_path: Path) -> None:
    """A link to a file outside is not read, and a FIFO is not waited for."""
    root = tmp_path / "clone"
    project = _of_project(root)
    (tmp_path / "secret.toml").write_text("[search]\nrrf_k = 9\n")
    (project.home / "kb.toml").symlink_to(tmp_path / "secret.toml")
    with pytest.raises(ConfigError, match="a link that leads out of the project"):
        load([project.home / "kb.toml"], env={}, project=project)
    os.mkfifo(project.home / "config.d/x.toml")
    with pytest.raises(ConfigError, match="not a regular file"):
        load([], [str(project.home / "config.d/x.toml")], env={}, project=project)


def test_a_file_beside_the_projects_home_is_the_projects(tmp_path: Path) -> None:
    """By its path it says what is harmless, too; the warning says from where the rest counts."""
    project = _of_project(tmp_path)
    (tmp_path / "ci.toml").write_text("[llm]\nprovider = 'ollama'\n[search]\nrrf_k = 9\n")
    said: list[str] = []
    found = load([], [str(tmp_path / "ci.toml")], env={}, project=project, warn=said.append)
    assert (found.search.rrf_k, found.llm) == (9, LlmSettings())
    assert f"counts only from {project.home}/config.d after `kb trust`" in said[0]


def test_where_texts_go_to_be_embedded_says_the_user_alone(tmp_path: Path) -> None:
    """A file that was accepted may name a model, but no server that gets texts and a key."""
    project = _of_project(tmp_path)
    file = project.home / "kb.toml"
    file.write_text("[embed]\nkind = 'openai'\nbase_url = 'https://elsewhere.example/v1'\n")
    said: list[str] = []
    accepted = _of_project(tmp_path, file.read_bytes())
    found = load([file], ["embed.base_url=https://mine.example"], {}, project=accepted)
    assert (found.embed.kind, found.embed.base_url) == ("openai", "https://mine.example")
    assert load([file], env={}, project=accepted, warn=said.append).embed.base_url == ""
    assert "embed.base_url is for your own settings alone" in said[0]

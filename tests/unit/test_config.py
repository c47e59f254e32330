"""Settings: layers, and errors that say where."""

from pathlib import Path

import msgspec
import pytest

from kb.config import Settings, load
from kb.errors import ConfigError


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
        ("search.rrf_k=0", "search.rrf_k: Expected `int` >= 1"),
        ("search.rrf_k=much", "search.rrf_k: Expected `int`, got `str`"),
        ("search.rrf_kk=1", "unknown setting search.rrf_kk; did you mean search.rrf_k?"),
        ("nothing.at=1", "unknown setting nothing"),
        ("embed.kind=magic", "embed.kind: Invalid enum value 'magic'"),
        ("search=1", "search: Expected `object`, got `int`"),
        ("search.rrf_k.deep=1", "search.rrf_k: Expected `int`"),
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
        ('[embed]\n"kind" = "magic"\n', 2, "embed.kind"),
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
    with pytest.raises(ConfigError, match="overlap_tokens is over a quarter of tokens_max"):
        load([], ["chunk.tokens_max=32"], env={})


def test_settings_are_frozen() -> None:
    """What was read once is not changed."""
    with pytest.raises(AttributeError):
        Settings().search.rrf_k = 1  # type: ignore[misc]
    assert msgspec.convert(msgspec.to_builtins(Settings()), Settings) == Settings()

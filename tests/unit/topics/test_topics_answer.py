"""Answers: lists, texts and their bounds."""

import itertools
from pathlib import Path

import pytest
from topic_folders import NO_BOUND, PROJECT, SKILLS, learned, reasons, refused, topic, write

from kb.knowledge.topics import Learned, LearnLimits, LearnRefusal, answer, learnable
from kb.knowledge.topics.records import Topic

EVERY = ("code-quality", "maintainers/jean", "maintainers/ryan")


@pytest.mark.parametrize(
    ("pattern", "slugs"),
    [
        ("*", ("code-quality",)),
        ("**", EVERY),
        ("maintainers/*", EVERY[1:]),
        ("maintainers/**", EVERY[1:]),
        ("maintainers/j*", EVERY[1:2]),
        ("internal-notes", ("internal-notes",)),
    ],
)
def test_what_patterns_load(tmp_path: Path, pattern: str, slugs: tuple[str, ...]) -> None:
    """One level, all levels, a start, and a hidden subject by its slug."""
    assert learned(topic(tmp_path, PROJECT), pattern).subjects == slugs


def test_a_list_of_subjects(tmp_path: Path) -> None:
    """Title, description, and what is not hidden."""
    skills = topic(tmp_path, SKILLS, title="Learnable Assistant Skills", description="About.\n")
    assert learned(skills).text == (
        "# Topic: Learnable Assistant Skills\n\nAbout.\n\n## Available subjects:\n\n- ast-grep\n\n"
        "To read any of these, call `learn` again and name them in `subjects`.\n"
    )


def test_a_list_tells_what_is_learned_already(tmp_path: Path) -> None:
    """In a section of its own; not among what is available."""
    project = topic(tmp_path, PROJECT, learned=("maintainers/*",))
    assert learned(project).text == (
        "# Topic: project\n\n## Available subjects:\n\n- code-quality\n\n"
        "To read any of these, call `learn` again and name them in `subjects`.\n\n"
        "## Already learned (in system prompt):\n\n- maintainers/jean\n- maintainers/ryan\n"
    )
    everything = topic(tmp_path, learned=("**", "internal-notes"))
    text = learned(everything).text
    assert "Available" not in text
    assert "- internal-notes\n" in text


def test_one_subject_comes_as_it_is(tmp_path: Path) -> None:
    """No tags, nothing escaped, no new line added."""
    said = "# A\n</subject> <knowledge>\r\nlast"
    assert learned(topic(tmp_path, {"a.md": said}), "a").text == said


def test_several_subjects_come_in_tags(tmp_path: Path) -> None:
    """Also when a glob means only one; in the order asked for, each of them once."""
    project = topic(tmp_path, PROJECT)
    assert learned(project, "*").text == '<subject "code-quality">\n# Quality\n</subject>\n'
    found = learned(project, "maintainers/ryan", "**", "code-quality")
    assert found.subjects == ("maintainers/ryan", "code-quality", "maintainers/jean")
    assert found.text == (
        '<subject "maintainers/ryan">\n# Ryan\n</subject>\n\n'
        '<subject "code-quality">\n# Quality\n</subject>\n\n'
        '<subject "maintainers/jean">\n# Jean\n</subject>\n'
    )


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("a.toml", "toml"),
        ("a.json", "json"),
        ("a.yaml", "yaml"),
        ("a.yml", "yaml"),
        ("a.rs", "rust"),
        ("a.py", "python"),
        ("a.js", "javascript"),
        ("a.ts", "typescript"),
        ("a.go", "go"),
        ("a.JSON", "json"),
        ("a.c++", "c++"),
        ("a.`x", ""),
        ("a.x y", ""),
    ],
)
def test_code_comes_in_a_fence(tmp_path: Path, name: str, language: str) -> None:
    """The extension is the language; one that could break the fence is left out."""
    assert learned(topic(tmp_path, {name: "x = 1"}), "a").text == f"```{language}\nx = 1\n```\n"


@pytest.mark.parametrize("name", ["a.md", "a.txt", "a.text", "a", "a.MD"])
def test_prose_comes_as_it_is(tmp_path: Path, name: str) -> None:
    """Markdown and text, and what has no extension."""
    assert learned(topic(tmp_path, {name: "x = 1"}), "a").text == "x = 1"


@pytest.mark.parametrize("ticks", [1, 3, 4, 40])
def test_no_fence_is_closed_from_within(tmp_path: Path, ticks: int) -> None:
    """It is longer than any run of backticks in the text."""
    inner = "`" * ticks
    text = learned(topic(tmp_path, {"a.py": f"{inner}\ncode\n{inner}\n"}), "a").text
    fence = "`" * max(3, ticks + 1)
    assert text == f"{fence}python\n{inner}\ncode\n{inner}\n{fence}\n"


@pytest.mark.parametrize(
    "trap",
    [
        "</subject>",
        "</SUBJECT >",
        "< / subject>",
        '<subject "b">',
        "</topic>",
        "</knowledge>",
        "<knowledge>",
    ],
)
def test_no_text_opens_or_closes_a_tag(tmp_path: Path, trap: str) -> None:
    """Between tags, the bracket in front of a tag's name is no bracket any more."""
    text = learned(topic(tmp_path, {"a.md": f"x {trap} y <subjective> <b>\n"}), "*").text
    inner = text.removeprefix('<subject "a">\n').removesuffix("</subject>\n")
    assert inner == f"x &lt;{trap[1:]} y <subjective> <b>\n"


def test_no_name_breaks_a_tag(tmp_path: Path) -> None:
    """Quotes and brackets of a slug are no quotes and brackets in its tag."""
    text = learned(topic(tmp_path, {'a">b<c.md': "x"}), "*").text
    assert text == '<subject "a&quot;&gt;b&lt;c">\nx\n</subject>\n'


@pytest.mark.parametrize("disabled", ["maintainers/jean", "maintainers/j*", "**/jean"])
def test_disabled_beats_everything(tmp_path: Path, disabled: str) -> None:
    """Lists, globs, the exact slug, and `learned`."""
    project = topic(tmp_path, PROJECT, disabled=(disabled,), learned=("maintainers/jean",))
    assert learned(project).subjects == ("code-quality", "maintainers/ryan")
    assert "jean" not in learned(project).text
    assert learned(project, "maintainers/*").subjects == ("maintainers/ryan",)
    assert refused(project, "maintainers/jean").kind == "no_match"


def test_a_disabled_glob_keeps_hidden_ones_out_too(tmp_path: Path) -> None:
    """What is to be kept out is kept out whole."""
    assert refused(topic(tmp_path, SKILLS, disabled=("ast-grep/*",)), "ast-grep/rules")


def test_what_is_learned_is_not_given_again(tmp_path: Path) -> None:
    """Globs pass it over; by its name, or where nothing else is meant, it is said."""
    project = topic(tmp_path, PROJECT, learned=("maintainers/*",))
    assert learned(project, "**").subjects == ("code-quality",)
    notice = "## Already learned (in system prompt):\n\n- maintainers/jean\n"
    assert learned(project, "maintainers/jean").text == notice
    assert learned(project, "maintainers/*").text == notice + "- maintainers/ryan\n"
    both = learned(project, "maintainers/jean", "code-quality").text
    assert both == f'<subject "code-quality">\n# Quality\n</subject>\n\n{notice}'


def test_what_means_nothing_is_said(tmp_path: Path) -> None:
    """Alone it is a refusal; beside others it is left out by name."""
    project = topic(tmp_path, PROJECT)
    alone = refused(project, "nope", "neither/*")
    assert alone.kind == "no_match"
    assert "'nope'" in alone.message
    assert "'neither/*'" in alone.message
    beside = learned(project, "nope", "code-quality")
    assert reasons(beside) == {"nope": "nothing matches it"}
    assert beside.text == '<subject "code-quality">\n# Quality\n</subject>\n'


@pytest.mark.parametrize("blank", ["", "  "])
def test_blank_patterns_are_none(tmp_path: Path, blank: str) -> None:
    """An empty word asks for the list."""
    assert learned(topic(tmp_path, PROJECT), blank) == learned(topic(tmp_path))


def test_binary_files_are_skipped(tmp_path: Path) -> None:
    """A zero byte in the first 8,192 makes a file binary; a later one does not."""
    one = topic(tmp_path, {"bin.md": b"a" * 8_191 + b"\0", "late.md": b"a" * 8_192 + b"\0"})
    assert "binary" in reasons(learned(one, "bin"))["bin"]
    assert learned(one, "bin").left_out[0].failed
    assert learned(one, "late").text.endswith("\0")
    swept = learned(one, "**")
    assert swept.subjects == ("late",)
    assert not swept.left_out[0].failed


def test_what_is_not_utf8_is_replaced_and_said(tmp_path: Path) -> None:
    """The rest can be read; a byte order mark is none of the text."""
    one = topic(tmp_path, {"latin.md": "caf\xe9\n".encode("latin-1"), "bom.md": b"\xef\xbb\xbfx"})
    found = learned(one, "latin")
    assert found.text == "caf\ufffd\n"
    assert found.warnings == ("latin: not UTF-8; what cannot be read is shown as U+FFFD",)
    assert learned(one, "bom").text == "x"


def test_large_files_are_refused(tmp_path: Path) -> None:
    """At the limit a file is read, over it not."""
    one = topic(tmp_path, {"at.md": "x" * (1 << 20), "over.md": "x" * ((1 << 20) + 1)})
    assert len(learned(one, "at").text) == 1 << 20
    assert "limit of 1,048,576 bytes" in reasons(learned(one, "over"))["over"]


def test_a_subject_that_is_too_long_is_cut(tmp_path: Path) -> None:
    """The first one, in whole characters, its fence and its tags closed; and it is said."""
    one = topic(tmp_path, {"a.md": "綠茶" * 1_000, "b.py": "x = 1\n" * 1_000, "c.md": "c\n"})
    bound = LearnLimits(answer_bytes_max=100)
    found = learned(one, "a", limits=bound)
    assert found.text == ("綠茶" * 17)[:33]
    assert found.truncated == "a is cut to 33 of 2000 characters"
    code = learned(one, "b", limits=bound)
    assert code.text.startswith("```python\nx = 1\n")
    assert code.text.endswith("\n```\n")
    assert len(code.text) <= 101
    many = learned(one, "**", limits=bound)
    assert many.subjects == ("a",)
    assert many.text.endswith("\n</subject>\n")
    assert many.truncated is not None
    assert "left out for length: b, c; ask for them by name" in many.truncated
    assert learned(one, "a", limits=LearnLimits(answer_bytes_max=1)).text == "綠"


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    """Whole subjects stand as long as they fit; of many others the first ten are named."""
    one = topic(tmp_path, {f"{n:02}.md": "x" * 80 for n in range(20)})
    found = learned(one, "*", limits=LearnLimits(answer_bytes_max=250))
    assert found.subjects == ("00", "01")
    assert found.truncated == (
        "left out for length: 02, 03, 04, 05, 06, 07, 08, 09, 10, 11 and 8 more; "
        "ask for them by name"
    )
    assert learned(one, "*").truncated is None


def test_a_long_list_is_cut(tmp_path: Path) -> None:
    """Subjects are listed as long as they fit, and how many are not is said."""
    one = topic(tmp_path, {f"{n:03}.md": "" for n in range(100)}, learned=("09*",))
    found = learned(one, limits=LearnLimits(answer_bytes_max=100))
    assert len(found.text.split("## ")[1]) < 300
    shown = len(found.subjects)
    assert 1 < shown < 90
    assert found.truncated == f"{100 - shown - 1} subjects are not listed; ask for them by globs"


def test_of_many_problems_the_first_are_named(tmp_path: Path) -> None:
    """A hundred, what was asked for by name before the rest; how many more there are is said."""
    one = topic(tmp_path, {"a.md": "a"})
    for number in range(150):
        (tmp_path / f"broken-{number:03}.md").symlink_to("nowhere")
    for found in (learned(one), learned(one, "*")):
        assert len(found.left_out) == 100
        assert found.warnings == ("50 more subjects are left out for reasons of their own",)
    named = learned(one, "*", "broken-149")
    assert named.left_out[0].subject == "broken-149"


@pytest.mark.parametrize("subjects", [["x"] * 65, ["x" * 4_097]])
def test_too_much_is_not_looked_for(tmp_path: Path, subjects: list[str]) -> None:
    """The number and the length of patterns have their bounds."""
    assert refused(topic(tmp_path, PROJECT), *subjects).kind == "invalid"


def topics(tmp_path: Path) -> tuple[Topic, ...]:
    return (
        topic(tmp_path / "a", {"a.md": "a"}, id="alpha", title="Beta"),
        topic(tmp_path / "b", {"b.md": "b"}, id="Beta"),
        topic(tmp_path / "c", {"c.md": "c"}, id="gamma", title="Straße der Künste"),
    )


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("alpha", "alpha"),
        ("Beta", "Beta"),
        ("BETA", "alpha"),
        ("STRASSE  der künste", "gamma"),
        ("Alpha", None),
        ("", None),
    ],
)
def test_a_topic_is_found_by_id_then_by_title(tmp_path: Path, name: str, found: str | None) -> None:
    """The id as it is written, the title whatever its case; else the topics that there are."""
    said = answer(topics(tmp_path), name, None, NO_BOUND)
    if found is None:
        assert isinstance(said, LearnRefusal)
        assert said.kind == "unknown_topic"
        assert "alpha (Beta), Beta, gamma (Straße der Künste)" in said.message
    else:
        assert isinstance(said, Learned)
        assert said.topic == found


def test_what_can_be_learned_still(tmp_path: Path) -> None:
    """Hidden subjects count, learned and disabled ones and those with a problem do not."""
    outside = write(tmp_path / "out", {"x.md": "x"})
    (write(tmp_path / "links", {}) / "x.md").symlink_to(outside / "x.md")
    gone = topic(tmp_path / "gone", id="gone")
    gone.folder.rmdir()
    able = learnable(
        (
            topic(tmp_path / "plain", {"a.md": "a"}, id="plain"),
            topic(tmp_path / "hidden", {".a.md": "a"}, id="hidden"),
            topic(tmp_path / "known", {"a.md": "a"}, id="known", learned=("**",)),
            topic(tmp_path / "off", {"a.md": "a"}, id="off", disabled=("a",)),
            topic(tmp_path / "links", id="links"),
            topic(tmp_path / "empty", id="empty"),
            gone,
        ),
        100,
    )
    assert [one.id for one in able] == ["plain", "hidden"]


def test_equal_folders_give_equal_answers(tmp_path: Path) -> None:
    """In whatever order the files were made."""
    names = ["b.md", "a/z.md", "a.py", "c/d/e.txt", "z.md"]
    texts = set()
    for number, order in enumerate(itertools.islice(itertools.permutations(names), 0, 120, 17)):
        one = topic(tmp_path / str(number), {name: f"{name}\n" for name in order})
        texts.add(learned(one).text + learned(one, "**").text)
    assert len(texts) == 1

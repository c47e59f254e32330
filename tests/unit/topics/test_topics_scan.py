"""Subjects of a folder: slugs, what is hidden, and what is not to be read."""

import os
import unicodedata
from pathlib import Path

import pytest
from topic_folders import PROJECT, SKILLS, ask, learned, reasons, refused, topic, write

from kb.errors import TooLarge, Unreadable
from kb.knowledge.topics.scan import extension_of, scan, slug_of

ENTRIES = 20_000


@pytest.mark.parametrize(
    ("path", "slug", "extension"),
    [
        ("maintainers/jean.md", "maintainers/jean", "md"),
        ("code-quality.md", "code-quality", "md"),
        (".internal-notes.md", "internal-notes", "md"),
        ("ast-grep/.rules.md", "ast-grep/rules", "md"),
        (".hidden-dir/visible.md", "hidden-dir/visible", "md"),
        ("archive.tar.gz", "archive.tar", "gz"),
        ("v1.2/notes.md", "v1.2/notes", "md"),
        ("README", "README", ""),
        (".gitignore", "gitignore", ""),
        ("ends.", "ends.", ""),
        ("...", "..", ""),
        ("A.MD", "A", "md"),
        ("with space.md", "with space", "md"),
        ("cafe\u0301.md", "caf\u00e9", "md"),
    ],
)
def test_a_slug_is_the_path_made_plain(path: str, slug: str, extension: str) -> None:
    """Without the last extension, without the dot in front of any part, in composed characters."""
    assert (slug_of(path), extension_of(path)) == (slug, extension)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            PROJECT,
            {
                "maintainers/jean": False,
                "maintainers/ryan": False,
                "code-quality": False,
                "internal-notes": True,
            },
        ),
        (SKILLS, {"ast-grep": False, "ast-grep/rules": True}),
        ({".hidden-dir/visible.md": ""}, {"hidden-dir/visible": True}),
        ({"a/.b/c/d.md": ""}, {"a/b/c/d": True}),
    ],
)
def test_the_layouts_and_what_is_hidden(
    tmp_path: Path, files: dict[str, str | bytes], expected: dict[str, bool]
) -> None:
    """Hidden is what has a part that starts with a dot; the folder's own path does not count."""
    found = scan(write(tmp_path / ".kb/topic", files), ENTRIES)
    assert {one.slug: one.is_hidden for one in found} == expected
    assert [one.slug for one in found] == sorted(expected)


def test_hidden_subjects_are_read_by_their_slug_alone(tmp_path: Path) -> None:
    """No list and no glob shows them, however near it comes."""
    skills = topic(tmp_path, SKILLS)
    assert learned(skills).subjects == ("ast-grep",)
    for pattern in ("*", "**"):
        assert learned(skills, pattern).subjects == ("ast-grep",)
    for pattern in ("ast-grep/*", "ast-grep/**", "ast-grep/r*", "ast-grep/.rules"):
        assert refused(skills, pattern).kind == "no_match"
    assert learned(skills, "ast-grep/rules").text == "# Rules\n"


def test_two_files_with_one_slug_are_both_named(tmp_path: Path) -> None:
    """Neither is given, by whatever pattern; the others are not touched by it."""
    one = topic(tmp_path, {"a.md": "md", "a.txt": "txt", "b.md": "b\n"})
    for found in (learned(one), learned(one, "a"), learned(one, "*")):
        assert "a.md and a.txt" in reasons(found)["a"]
        assert found.left_out[0].failed
        assert "a" not in found.subjects
    assert learned(one, "b").text == "b\n"


def test_links_stay_inside(tmp_path: Path) -> None:
    """A link to a file inside is a subject; one that leads out or to a folder is named and shut."""
    outside = write(tmp_path / "outside", {"secret.md": "secret"})
    folder = write(tmp_path / "topic", {"real/a.md": "inside\n"})
    (folder / "alias.md").symlink_to("real/a.md")
    (folder / "out.md").symlink_to(outside / "secret.md")
    (folder / "outdir").symlink_to(outside)
    (folder / "loop").symlink_to(folder)
    (folder / "broken.md").symlink_to("nowhere.md")
    (folder / "self.md").symlink_to("self.md")
    one = topic(folder)
    assert learned(one).subjects == ("alias", "real/a")
    assert learned(one, "alias").text == "inside\n"
    for asked, said in (
        ("out", "leads out of"),
        ("outdir", "leads out of"),
        ("outdir/secret", "leads out of"),
        ("loop", "a link to a folder"),
        ("loop/real/a", "a link to a folder"),
        ("broken", "leads nowhere"),
        ("self", "leads nowhere"),
    ):
        found = learned(one, asked)
        assert found.text == ""
        assert said in reasons(found)[asked]
        assert found.left_out[0].failed
    swept = learned(one, "**")
    assert "secret" not in swept.text
    assert not any(left.failed for left in swept.left_out)


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    """What the settings name is meant, wherever it leads."""
    write(tmp_path / "real", {"a.md": "a\n"})
    (tmp_path / "topic").symlink_to("real")
    assert learned(topic(tmp_path / "topic"), "a").text == "a\n"


def test_what_is_no_file_is_never_opened(tmp_path: Path) -> None:
    """A FIFO, or a link to a device, holds nobody up."""
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "null.md").symlink_to(os.devnull)
    one = topic(tmp_path)
    assert learned(one).subjects == ()
    assert reasons(learned(one, "pipe"))["pipe"] == "not a regular file"
    assert "leads out of" in reasons(learned(one, "null"))["null"]
    assert learned(one, "**").text == ""


@pytest.mark.parametrize(
    "name", [b"a\nb.md", b"a\x1b[31m.md", b"\xff.md", "a\u202eb.md".encode(), b"a\x7f.md"]
)
def test_names_that_cannot_be_written(tmp_path: Path, name: bytes) -> None:
    """No such name gets into an answer as it is; it is said that there is such a file."""
    write(tmp_path, {"good.md": "good\n"})
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text("text")
    found = learned(topic(tmp_path))
    assert found.subjects == ("good",)
    (left,) = found.left_out
    assert "cannot be written" in left.reason
    assert left.subject.isprintable()
    assert learned(topic(tmp_path), "**").subjects == ("good",)


@pytest.mark.parametrize(
    "name", ["**", "*", "a*b", "[x]", "?", "{a}", "%s", "a b", "$(id)", "-k", "茶", "a&b", "`"]
)
def test_odd_names_are_read_by_their_slug(tmp_path: Path, name: str) -> None:
    """A slug means its subject, whatever characters it has."""
    one = topic(tmp_path, {f"{name}.md": "odd\n", "other/deep.md": "deep\n"})
    assert name in learned(one).subjects
    assert "odd\n" in learned(one, name).text


def test_two_spellings_of_an_accent_are_one(tmp_path: Path) -> None:
    """Asked for in either form it is found."""
    one = topic(tmp_path, {"caf\u00e9.md": "c\n"})
    for form in ("NFC", "NFD"):
        assert learned(one, unicodedata.normalize(form, "café")).text == "c\n"


def test_a_path_that_leads_up_means_nothing(tmp_path: Path) -> None:
    """Slugs are compared, never opened as paths."""
    write(tmp_path, {"secret.md": "secret"})
    one = topic(tmp_path / "topic", {"a.md": "a"})
    for asked in ("../secret", "../secret.md", str(tmp_path / "secret"), "./a", "a.md", "\0"):
        assert refused(one, asked).kind == "no_match"


def test_deep_folders_are_walked(tmp_path: Path) -> None:
    """As deep as the system lets them be."""
    deep = "/".join(["d"] * 300)
    one = topic(tmp_path, {f"{deep}/a.md": "deep\n"})
    assert learned(one).subjects == (f"{deep}/a",)
    assert learned(one, f"{deep}/a").text == "deep\n"


def test_a_folder_with_too_much_in_it_is_refused(tmp_path: Path) -> None:
    """Files and folders are counted together."""
    folder = write(tmp_path, {"a/b.md": "", "c.md": ""})
    assert len(scan(folder, 3)) == 2
    with pytest.raises(TooLarge, match="over 2 files and folders"):
        scan(folder, 2)


def test_a_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    """The folder of the topic is an error, with what the system says of it."""
    with pytest.raises(Unreadable, match="cannot be listed"):
        scan(tmp_path / "none", ENTRIES)
    gone = topic(tmp_path / "topic")
    gone.folder.rmdir()
    assert refused(gone).kind == "unreadable"
    assert refused(gone, "a").kind == "unreadable"


def test_an_inner_folder_that_cannot_be_listed_is_said(tmp_path: Path) -> None:
    """Its path is longer than the system takes; what lies above it is there."""
    one = topic(tmp_path, {"a.md": "a\n"})
    fd = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=fd)
        inner = os.open("d" * 250, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(fd)
    found = learned(one)
    assert found.subjects == ("a",)
    (left,) = found.left_out
    assert "cannot be listed" in left.reason
    assert left.failed


def test_an_empty_folder_has_nothing(tmp_path: Path) -> None:
    """It is listed as such, and nothing in it is meant."""
    assert learned(topic(tmp_path)).text == "# Topic: project\n\nThere is nothing to list here.\n"
    assert ask(topic(tmp_path), "**") == refused(topic(tmp_path), "**")

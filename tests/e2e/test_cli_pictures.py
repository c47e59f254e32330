"""Pictures beside notes, by the real command: found by name, never before a note, and no copy."""

import shutil
from pathlib import Path

import picture_files as pictures
import pytest
from commands import Home


def vault(folder: Path) -> Path:
    """A note on the kitchen among pictures that are called after it."""
    folder.mkdir()
    (folder / "Renovation.md").write_text(
        "# Renovation\n\nThe kitchen gets new tiles. See ![[plan.png]].\n"
    )
    for number in range(20):
        (folder / f"kitchen-{number:02}.jpg").write_bytes(pictures.jpeg(size=(640, 400 + number)))
    (folder / "kitchen.png").write_bytes(pictures.png((b"tEXt", b"Software\0x"), size=(200, 90)))
    (folder / "IMG_1234.JPG").write_bytes(pictures.jpeg(exif=pictures.CAMERA))
    packet = pictures.xmp("Attic", "A drawing of the attic stairs", ("plans",))
    chunk = (b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + packet)
    (folder / "plan.png").write_bytes(pictures.png(chunk))
    return folder


def test_pictures_come_after_notes(tmp_path: Path) -> None:
    """A note that says the word is first, whatever twenty pictures are called."""
    home, folder = Home(tmp_path / "home"), vault(tmp_path / "in")
    added = home.run("add", folder, "--json").json
    assert (added["added"], added["failed"]) == (24, 0)
    home.run("worker", "--drain")

    def names(mode: str, query: str, *words: str) -> list[str]:
        found = home.run("search", query, "--mode", mode, "--json", "-k", "60", *words).json
        return [Path(hit["source"]).name for hit in found["hits"]]

    for mode in ("lexical", "hybrid"):
        assert names(mode, "kitchen")[0] == "Renovation.md"
        assert names(mode, "kitchen tiles")[0] == "Renovation.md"
        assert {f"kitchen-{number:02}.jpg" for number in range(20)} <= {*names(mode, "kitchen")}
        assert names(mode, "kitchen-07.jpg")[0] == "kitchen-07.jpg"
        assert names(mode, "IMG_1234")[0] == "IMG_1234.JPG"
        assert names(mode, "attic stairs", "--tag", "plans") == ["plan.png"]
        assert names(mode, "IMG_1234", "--on", "2019-05-03") == ["IMG_1234.JPG"]
    stats = home.run("stats", "--json").json
    assert (stats["passages"], stats["vectors"]) == (24, 2)


def test_a_name_comes_before_what_does_not_fit(tmp_path: Path) -> None:
    """All words of the query are in the name of the picture, and no note is about them."""
    home, folder = Home(tmp_path / "home"), tmp_path / "in"
    folder.mkdir()
    for number, subject in enumerate(("rivers", "engines", "bread", "taxes", "owls", "chess")):
        (folder / f"{number}.md").write_text(f"# On {subject}\n\nThis is all about {subject}.\n")
    for number in range(9):
        (folder / f"harvest {number}.png").write_bytes(pictures.png(size=(200, 90 + number)))
    (folder / "wedding venue.png").write_bytes(pictures.png(size=(300, 90)))
    (folder / "Harvest.md").write_text("# Harvest\n\nThe harvest of apples is late.\n")
    home.run("add", folder)
    home.run("worker", "--drain")
    for query in ("wedding venue", "venue"):
        found = home.run("search", query, "--json").json
        assert Path(found["hits"][0]["source"]).name == "wedding venue.png"
        assert not found["hits"][0]["weak"]
    hits = home.run("search", "harvest", "--json").json["hits"]
    assert Path(hits[0]["source"]).name == "Harvest.md"


def test_no_copy_is_kept_and_all_copes(tmp_path: Path) -> None:
    """`check`, `export`, `backup` and `compact` do without, and the file is read where it lies."""
    home, folder = Home(tmp_path / "home"), vault(tmp_path / "in")
    photo = folder / "IMG_1234.JPG"
    home.run("add", folder)
    kept = [path.suffix for path in (home.root / "raw").rglob("*") if path.is_file()]
    assert kept == [".md"]
    assert home.run("check").code == 0
    ident = home.ids()["IMG_1234.JPG"]
    out = tmp_path / "out.jpg"
    assert home.run("export", ident, "--raw", "-o", out).code == 0
    assert out.read_bytes() == photo.read_bytes()
    assert home.run("compact").code == 0
    assert home.run("backup", "create").code == 0
    (markdown,) = home.root.glob("md/file/img-1234--*")
    markdown.write_text("damaged")
    assert home.run("check").code != 0
    assert home.run("check", "--repair").code == 0
    assert home.run("check").code == 0
    photo.write_bytes(pictures.jpeg())
    gone = home.run("export", ident, "--raw", "-o", tmp_path / "other.jpg")
    assert gone.code != 0
    assert "kb keeps no copy of such files, and this one is gone or has changed" in gone.err
    assert home.run("add", folder).out.startswith("1 updated, 23 unchanged of 24 scanned")


def test_an_embed_is_a_link_and_a_name_means_the_note(tmp_path: Path) -> None:
    """`![[plan.png]]` leads to the picture, and `[[Plan]]` to the note beside it."""
    home, folder = Home(tmp_path / "home"), vault(tmp_path / "in")
    (folder / "Plan.md").write_text("# Plan\n\nWhat comes first.\n")
    (folder / "Log.md").write_text("See [[Plan]].\n")
    home.run("add", folder)
    ids = home.ids()
    (linked,) = home.run("show", ids["Renovation.md"], "--json").json["links"]
    assert linked["doc_id"] == ids["plan.png"]
    (linked,) = home.run("show", ids["Log.md"], "--json").json["links"]
    assert linked["doc_id"] == ids["Plan.md"]


def test_a_picture_by_standard_input_is_kept(tmp_path: Path) -> None:
    """There is no file to read again."""
    home = Home(tmp_path / "home")
    data = pictures.jpeg(exif=pictures.CAMERA)
    assert home.run("add", "-", "--title", "Mill", stdin=data).code == 0
    ident = home.ids()["-"]
    assert home.run("check").code == 0
    out = tmp_path / "out.jpg"
    home.run("export", ident, "--raw", "-o", out)
    assert out.read_bytes() == data


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed")
def test_words_in_a_picture_are_found(tmp_path: Path) -> None:
    """Read from the file itself, in the background, and marked as recognised."""
    from pdf_shapes import drawn, lines

    from kb.intake.canonicalize.pdf.render import page_picture

    home, path = Home(tmp_path / "home"), tmp_path / "sign.png"
    words = "The garden gate was painted green"
    path.write_bytes(pictures.png_of(page_picture(drawn(lines([words])), 0, "a.pdf")))
    home.run("add", path)
    home.run("worker", "--drain")
    (hit,) = home.run("search", "garden gate", "--mode", "lexical", "--json").json["hits"]
    assert (hit["title"], hit["ocr"]) == ("sign", True)
    assert words in hit["text"]
    assert home.run("add", path).out == "1 unchanged of 1 scanned\n"


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed")
def test_a_worker_names_what_failed(tmp_path: Path) -> None:
    """With --drain it ends with 3, once: a run in which nothing fails is all done."""
    home, path = Home(tmp_path / "home"), tmp_path / "sign.png"
    path.write_bytes(pictures.png())
    assert home.run("add", path).code == 0
    unknown = ("--cfg", 'ingest.ocr_languages=["xyz"]', "worker", "--drain")
    ran = home.run(*unknown)
    assert (ran.code, ran.out) == (3, "0 jobs left, 1 failed\n")
    named, total = ran.err.splitlines()
    assert named.startswith("kb: failed: ocr job of ")
    assert "xyz" in named
    assert total == "kb: 1 job failed; --retry-failed tries them again"
    again = home.run(*unknown)
    assert (again.code, again.out, again.err) == (0, "0 jobs left, 1 failed\n", "")
    assert home.run("worker", "--drain", "--retry-failed").code == 0

"""Files of many formats, by the real command: taken in from a folder, found, and shown."""

import io
import json
import zipfile
from pathlib import Path

import msgspec
import pytest
from commands import Home

from kb.store import docs
from kb.store.store import Store

ROOT = Path(__file__).parents[2]
REAL = ROOT.parent / "shared" / "data" / "files"
TEXT = "The kettle hums at noon."
_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def zipped(**parts: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for name, text in parts.items():
            target.writestr(name.replace("__", "/").replace("_", "."), text)
    return out.getvalue()


def files() -> dict[str, bytes]:
    """A file of each kind that says the same."""
    paragraph = f"<w:p><w:r><w:t>{TEXT}</w:t></w:r></w:p>"
    document = f'<w:document xmlns:w="{_W}"><w:body>{paragraph}</w:body></w:document>'
    cell = {"cell_type": "markdown", "source": [TEXT], "metadata": {}}
    return {
        "a.docx": zipped(word__document_xml=document),
        "a.odt": zipped(content_xml=f"<d><body><text><p>{TEXT}</p></text></body></d>"),
        "a.ipynb": json.dumps({"cells": [cell], "nbformat": 4, "metadata": {}}).encode(),
        "a.eml": f"From: ada@example.org\nSubject: Kettles\n\n{TEXT}\n".encode(),
        "a.csv": f"what,when\n{TEXT},noon\n".encode(),
    }


def test_each_is_taken_in_and_found(tmp_path: Path) -> None:
    """From a folder, without an option; a broken one is named, and the next goes on."""
    home, folder = Home(tmp_path / "home"), tmp_path / "in"
    folder.mkdir()
    for name, data in files().items():
        (folder / name).write_bytes(data)
    bomb = zipped(word__document_xml=" " * (300 << 20))
    (folder / "bomb.docx").write_bytes(bomb)
    (folder / "broken.xlsx").write_bytes(b"PK\x03\x04" + b"\0" * 40)
    added = home.run("add", folder)
    assert added.out == "5 added, 2 failed of 7 scanned\n"
    assert "bomb.docx: it unpacks to far more than its size" in added.err
    assert "broken.xlsx: it is damaged" in added.err
    hits = home.run("search", "kettle hums", "--mode", "lexical", "--json").json["hits"]
    assert {Path(hit["source"]).name for hit in hits} == set(files())
    assert home.run("add", folder).out == "5 unchanged, 2 failed of 7 scanned\n"


def test_cells_and_slides_are_places(tmp_path: Path) -> None:
    """A hit and a passage name the cells of their sheet, or the number of their slide."""
    home, formats = Home(tmp_path / "home"), ROOT / "examples" / "formats"
    home.run("add", *(formats / name for name in ("tenants.xlsx", "water.ods", "grafting.pptx")))
    for query, name, locator in (
        ("Lindqvist", "tenants.xlsx", "Tenants!A1:C3"),
        ("rhubarb", "water.ods", "Water!A1:B2"),
        ("scion", "grafting.pptx", "slide 1"),
    ):
        asked = ("search", query, "--mode", "lexical", "-k", 1)
        (hit,) = home.run(*asked, "--json").json["hits"]
        assert (Path(hit["source"]).name, hit["locator"]) == (name, locator)
        assert f"{formats / name} {locator}  " in home.run(*asked).out
        (row,) = home.run("ask", query, "--json").json["sources"][:1]
        assert row["locator"] == locator


def test_subtitles_say_when_and_slides_of_packs_where(tmp_path: Path) -> None:
    """The time of the passage; a show that came in a pack has its slides, too."""
    home, film = Home(tmp_path / "home"), tmp_path / "film.vtt"
    cues = (
        f"{n // 60:02}:{n % 60:02}:00.000 --> {n // 60:02}:{n % 60:02}:50.000\n"
        f"Sentence {n} of the film speaks of gadget{n} at some length."
        for n in range(90)
    )
    film.write_text("WEBVTT\n\n" + "\n\n".join(cues))
    home.run(
        "add",
        film,
        ROOT / "examples/formats/grafting.pptx",
        "--tags",
        "shown",
        "--visibility",
        "public",
    )
    (hit,) = home.run("search", "gadget77", "--mode", "lexical", "-k", 1, "--json").json["hits"]
    hour, minute, second = map(int, hit["locator"].removeprefix("at ").split(":"))
    assert second == 0
    assert 60 <= 60 * hour + minute <= 77
    assert hit["text"].startswith(f"[{hour}:{minute:02}:00] ")
    pack, other = tmp_path / "shown.tar", Home(tmp_path / "other")
    made = home.run("pack", "export", "--tag", "shown", "--to", pack, "--title", "Shown")
    assert made.code == 0, made.err
    taken = other.run("pack", "add", pack)
    assert taken.code == 0, taken.err
    (hit,) = other.run("search", "scion", "--mode", "lexical", "-k", 1, "--json").json["hits"]
    assert hit["locator"] == "slide 1"


def test_a_plain_text_of_before_is_read_by_its_new_parser(tmp_path: Path) -> None:
    """A CSV file that an earlier kb took for plain text becomes a table at the next look."""
    home, file = Home(tmp_path / "home"), tmp_path / "a.csv"
    file.write_bytes(files()["a.csv"])
    home.run("add", file)
    assert "| what | when |" in home.run("export", "a.csv").out
    (row,) = home.run("ls", "--json").json["docs"]
    with Store.open(home.root / "store") as store, store.write() as txn:
        doc = docs.get(txn, row["doc_id"])
        assert doc is not None
        docs.replace(txn, msgspec.structs.replace(doc, mime="text/plain", canonicalizer="canon-1"))
    assert home.run("add", file).out == "1 updated of 1 scanned\n"
    assert home.run("add", file).out == "1 unchanged of 1 scanned\n"


@pytest.mark.skipif(not REAL.is_dir(), reason="the real files in ../shared are not here")
def test_real_files_are_taken_in_or_named(tmp_path: Path) -> None:
    """Every office file, book, notebook and mail: none is lost, and few cannot be read."""
    endings = {".docx", ".xlsx", ".pptx", ".odt", ".epub", ".ipynb", ".eml", ".csv"}
    paths = [path for path in sorted(REAL.rglob("*")) if path.suffix in endings]
    home = Home(tmp_path / "home")
    report = home.run("add", *paths, "--no-wait", "--json").json
    assert report["scanned"] == len(paths) > 90
    assert report["added"] + report["unchanged"] + report["failed"] == len(paths)
    assert report["failed"] <= 0.1 * len(paths)

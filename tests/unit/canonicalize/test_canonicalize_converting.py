"""How are files of old offices read? By programs that stand for those of this machine."""

import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from kb.errors import Unparsable, Unsupported
from kb.intake.canonicalize import CanonicalizeInput, Parser, converting, detect_mime
from kb.model.doc import Coverage
from kb.model.text import Canonical

REAL = Path(__file__).parents[3].parent / "shared" / "data" / "files"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)


class Programs:
    """A folder that is the whole PATH beside the shell's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, name: str, script: str) -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Programs]:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("cat", "cp", "sleep", "env", "ls", "python3"):
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("SECRET", "x")
    return Programs(folder)


def parse(data: bytes, name: str) -> Canonical:
    with Parser() as parser:
        source = CanonicalizeInput(data=data, mime=detect_mime(data, name), name=name)
        return parser.parse(source)


def test_without_a_program_it_says_what_to_install(programs: Programs) -> None:
    """The file is named, and the next one goes on."""
    with pytest.raises(Unsupported, match=r"^a\.doc: .* apt install antiword"):
        parse(OLE, "a.doc")
    with pytest.raises(Unsupported, match=r"^a\.ppt: .* apt install catdoc"):
        parse(OLE, "a.ppt")


def test_pages_of_djvu_are_those_of_its_layer_of_text(programs: Programs) -> None:
    """By djvutxt, which ends each page with a form feed."""
    data = b"AT&TFORM" + bytes(400)
    with pytest.raises(Unsupported, match=r"^a\.djvu: .* apt install djvulibre-bin"):
        parse(data, "a.djvu")
    programs.add("djvutxt", r"printf 'Mill race \n\n\f\fby the weir\n\f'")
    book = parse(data, "a.djvu")
    assert (book.markdown, book.mime) == ("Mill race\f\fby the weir\n", "application/x-djvu")
    assert book.coverage == Coverage(pages=3, pages_with_text=3)


def test_a_text_is_read_as_it_is_printed(programs: Programs) -> None:
    """By antiword and catppt; the doc keeps the format of its file."""
    programs.add("antiword", 'echo "words: $*"')
    programs.add("catppt", "echo slides")
    doc = parse(OLE, "a.doc")
    assert doc.markdown.startswith("words: -m UTF-8.txt -w 0 /")
    assert (doc.mime, doc.title) == ("application/msword", "a")
    assert parse(OLE, "a.ppt").markdown == "slides\n"


def test_libreoffice_comes_first_and_knows_nothing(programs: Programs, tmp_path: Path) -> None:
    """In a folder of its own with a profile of its own; what it makes is read as docx."""
    made = tmp_path / "made.docx"
    made.write_bytes(_docx("From the old file."))
    seen = tmp_path / "seen"
    programs.add("antiword", "echo no")
    programs.add("soffice", f"env > {seen}; ls $HOME >> {seen}; {_outdir(made)}")
    assert parse(OLE, "a.doc").markdown == "From the old file.\n"
    lines = seen.read_text().splitlines()
    assert "SECRET=x" not in lines
    assert "http_proxy=http://127.0.0.1:9" in lines
    assert "profile" in lines


def test_the_next_program_is_tried(programs: Programs) -> None:
    """Where LibreOffice fails antiword may not; where both fail it is said."""
    programs.add("soffice", "exit 3")
    programs.add("antiword", "echo words")
    assert parse(OLE, "a.doc").markdown == "words\n"
    programs.add("antiword", "exit 4")
    with pytest.raises(Unparsable, match=r"antiword could not read it \(status 4\); save it"):
        parse(OLE, "a.doc")


def test_what_takes_too_long_or_too_much_is_ended(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the clock, with all that it started, and by the size of what it prints."""
    monkeypatch.setattr(converting, "_WALL_S_MAX", 1)
    programs.add("antiword", "sleep 60 & sleep 60")
    with pytest.raises(Unparsable, match="antiword took too long"):
        parse(OLE, "a.doc")
    monkeypatch.setattr(converting, "_OUTPUT_BYTES_MAX", 1 << 20)
    programs.add("antiword", "while :; do echo words words words words; done")
    with pytest.raises(Unparsable, match="antiword"):
        parse(OLE, "a.doc")


@pytest.mark.skipif(
    None in map(shutil.which, ("antiword", "catdoc")) or not REAL.is_dir(),
    reason="antiword, catdoc or real files missing",
)
def test_real_documents_are_read() -> None:
    """Each by a program of this machine: the one that is too short for antiword by catdoc."""
    words = {
        "legacy_sample.doc": "Wear sunglasses",
        "eng_spa_mult.doc": "All human beings are born free and equal",
        "fake.doc": "Lorem ipsum dolor sit amet.",
        "doc.doc": "Vestibulum neque massa",
    }
    paths = {path.name.rpartition("-")[2]: path for path in REAL.rglob("*.doc")}
    assert paths.keys() == words.keys()
    for name, said in words.items():
        assert said in parse(paths[name].read_bytes(), name).markdown


def test_what_is_no_document_is_not_for_catdoc(programs: Programs) -> None:
    """It would print whatever bytes there are as words."""
    programs.add("catdoc", "echo words")
    assert parse(OLE, "a.doc").markdown == "words\n"
    with pytest.raises(Unsupported, match="antiword"):
        parse(b"\xdb\xa5" + OLE, "a.doc")


def _outdir(made: Path) -> str:
    return f"/bin/mkdir $HOME/out; /bin/cp {made} $HOME/out/in.docx"


def _docx(text: str) -> bytes:
    import io
    import zipfile

    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    body = f'<w:p xmlns:w="{space}"><w:r><w:t>{text}</w:t></w:r></w:p>'
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as target:
        document = f'<w:document xmlns:w="{space}"><w:body>{body}</w:body></w:document>'
        target.writestr("word/document.xml", document)
    return out.getvalue()

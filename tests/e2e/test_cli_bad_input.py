"""Bad input: each has one clear line that names it, an outcome, the documented exit code."""

import io
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from commands import Home, Ran, accounted, run, surroundings

GOOD = "# Good\n\nThe good note about tea."


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def pdf(text: str = "", password: str = "") -> bytes:
    """A one-page PDF, with text or without, encrypted or not."""
    from pypdf import PdfWriter
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = PdfWriter()
    page = writer.add_blank_page(300, 300)
    if text:
        font = DictionaryObject(
            {
                NameObject("/Type"): NameObject("/Font"),
                NameObject("/Subtype"): NameObject("/Type1"),
                NameObject("/BaseFont"): NameObject("/Helvetica"),
            }
        )
        fonts = DictionaryObject({NameObject("/F1"): font})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 20 200 Td ({text}) Tj ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)
    if password:
        writer.encrypt(password)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def only_good(home: Home, ran: Ran, bad: Path, outcome: str = "failed") -> str:
    """Check that of `bad` and a good note the good one went in; the reason given for the bad."""
    report = ran.json
    assert accounted(report)
    assert (report["scanned"], report["added"], report[outcome]) == (2, 1, 1)
    (problem,) = [p for p in report["problems"] if p["outcome"] == outcome]
    assert problem["source"] == str(bad)
    assert "\n" not in problem["reason"]
    found = home.run("search", "good tea", "--json", "--mode", "lexical").json
    assert [Path(hit["source"]).name for hit in found["hits"]] == ["good.md"]
    return str(problem["reason"])


# With it a scan comes in, to be read in the background.
NO_OCR = ("--cfg", "ingest.ocr=off")
BAD: dict[str, tuple[bytes, str]] = {
    "binary.txt": (bytes(range(256)) * 40, "not a format kb reads"),
    "program.md": (b"\x7fELF\x02\x01\x01" + bytes(2000), "format kb reads"),
    "locked.pdf": (pdf("secret", "password"), "password"),
    "damaged.pdf": (b"%PDF-1.7\n" + b"garbage" * 200, ""),
    "cut.pdf": (pdf("words")[:300], ""),
    "scanned.pdf": (pdf(), "text"),
    "empty.md": (b"", "empty"),
    "blank.md": (b" \n\t\n ", "empty"),
    "report.docx": (b"PK\x03\x04" + bytes(500), "damaged"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_named_file_that_cannot_be_read_fails_alone(
    home: Home, tmp_path: Path, name: str
) -> None:
    """A named source that is not taken in has failed, is named, and loses nothing else."""
    data, said = BAD[name]
    good, bad = tmp_path / "good.md", tmp_path / name
    good.write_text(GOOD)
    bad.write_bytes(data)
    ran = home.run(*NO_OCR, "add", bad, good, "--json")
    assert ran.code == 3
    assert said in only_good(home, ran, bad)


def test_a_bad_file_has_one_line_for_people(home: Home, tmp_path: Path) -> None:
    """Without --json each bad file has exactly one line on standard error, and the sum another."""
    names = ["locked.pdf", "damaged.pdf", "empty.md"]
    for name in names:
        (tmp_path / name).write_bytes(BAD[name][0])
    ran = home.run("add", *(tmp_path / name for name in names))
    assert ran.code == 3
    assert ran.out == "3 failed of 3 scanned\n"
    lines = ran.err.splitlines()
    assert [sum(name in line for line in lines) for name in names] == [1, 1, 1]
    assert lines[-1] == "kb: 3 of 3 sources failed"
    assert len(lines) == 4


@pytest.mark.parametrize("name", ["gone.md", "\udcff.md", "a" * 300, "no/such/dir/x.md"])
def test_a_missing_path_fails_alone(home: Home, tmp_path: Path, name: str) -> None:
    """A path that is not there, or cannot be, is a failure of that source alone."""
    good = tmp_path / "good.md"
    good.write_text(GOOD)
    ran = home.run("add", good, str(tmp_path / name), "--json")
    assert ran.code == 3
    assert (ran.json["added"], ran.json["failed"]) == (1, 1)


def test_inside_a_folder_rules_skip_and_defects_fail(home: Home, tmp_path: Path) -> None:
    """In a folder what a rule leaves out is skipped, what should have worked has failed."""
    folder = tmp_path / "n"
    folder.mkdir()
    (folder / "good.md").write_text(GOOD)
    (folder / "large.md").write_text("words " * 400)
    for name, (data, _) in BAD.items():
        (folder / name).write_bytes(data)
    (folder / "link.md").symlink_to(folder / "good.md")
    ran = home.run(*NO_OCR, "--cfg", "ingest.file_bytes_max=2200", "add", "-r", folder, "--json")
    report = ran.json
    assert accounted(report)
    outcomes = {Path(p["source"]).name: p["outcome"] for p in report["problems"]}
    assert outcomes == {
        "binary.txt": "skipped",
        "blank.md": "skipped",
        "cut.pdf": "failed",
        "damaged.pdf": "failed",
        "empty.md": "skipped",
        "large.md": "skipped",
        "link.md": "skipped",
        "locked.pdf": "failed",
        "program.md": "failed",
        "report.docx": "failed",
        "scanned.pdf": "failed",
    }
    assert ran.code == 3


def test_a_file_over_the_limit(home: Home, tmp_path: Path) -> None:
    """A file over file_bytes_max is not read; the line says both sizes and the setting."""
    good, large = tmp_path / "good.md", tmp_path / "large.md"
    good.write_text(GOOD)
    large.write_text("x" * 5000)
    ran = home.run("--cfg", "ingest.file_bytes_max=4096", "add", large, good, "--json")
    assert ran.code == 3
    reason = only_good(home, ran, large)
    assert "5,000 bytes" in reason
    assert "ingest.file_bytes_max" in reason


def test_a_sparse_file_of_100_mb(home: Home, tmp_path: Path) -> None:
    """100 MB are over the limit that holds without a setting."""
    good, large = tmp_path / "good.md", tmp_path / "large.md"
    good.write_text(GOOD)
    with large.open("wb") as file:
        file.truncate(100 << 20)
    ran = home.run("add", large, good, "--json")
    assert "over the limit" in only_good(home, ran, large)


def test_a_stream_over_the_limit(home: Home) -> None:
    """What is piped in is cut off at the limit, not swallowed."""
    ran = home.run("--cfg", "ingest.file_bytes_max=10", "add", "-", "--json", stdin="x" * 100)
    assert ran.code == 3
    assert ran.json["problems"][0]["source"] == "-"


def without_rights() -> list[str]:
    """What runs a command as someone who may not read everything: as root, less its powers."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("root reads every file, and setpriv is not here to take that away")
    return [setpriv, "--inh-caps=-all", "--bounding-set=-all"]


def test_what_may_not_be_read(home: Home, tmp_path: Path) -> None:
    """A file or folder without the right to read it fails by name; the rest goes in."""
    prefix = without_rights()
    folder = tmp_path / "n"
    (folder / "closed").mkdir(parents=True)
    good, secret = folder / "good.md", folder / "secret.md"
    good.write_text(GOOD)
    secret.write_text("secret")
    (folder / "closed" / "in.md").write_text("inside")
    secret.chmod(0o000)
    (folder / "closed").chmod(0o000)
    try:
        named = run([*prefix, *home.argv("add", secret, good, "--json")])
        assert named.code == 3
        assert "Permission denied" in only_good(home, named, secret)
        walked = run([*prefix, *home.argv("add", "-r", folder, "--json")])
        assert walked.code == 3
        assert accounted(walked.json)
        assert (walked.json["unchanged"], walked.json["failed"]) == (1, 2)
        below = run([*prefix, *home.argv("add", folder / "closed" / "in.md", "--json")])
        assert (below.code, below.json["failed"]) == (3, 1)
        (folder / "closed").chmod(0o700)
        (folder / "closed" / ".kbignore").write_text("*.md")
        (folder / "closed" / ".kbignore").chmod(0o000)
        left_out = run([*prefix, *home.argv("add", "-r", folder / "closed", "--json")])
        assert left_out.json["added"] == 0
        assert ".kbignore cannot be read" in left_out.json["problems"][0]["reason"]
    finally:
        (folder / "closed").chmod(0o700)


def test_a_home_that_may_not_be_written(tmp_path: Path) -> None:
    """A read-only home can be searched; adding to it fails with one line, not with half a doc."""
    prefix = without_rights()
    home, note = Home(tmp_path / "home"), tmp_path / "good.md"
    note.write_text(GOOD)
    home.run("add", note)
    home.run("search", "tea")
    places = [home.root, *(p for p in home.root.rglob("*") if p.is_dir())]
    for place in places:
        place.chmod(0o500)
    (home.root / "store" / "data.mdb").chmod(0o400)
    try:
        found = run([*prefix, *home.argv("search", "tea", "--json")])
        assert found.code == 0
        assert found.json["hits"][0]["title"] == "Good"
        note.write_text("other words")
        ran = run([*prefix, *home.argv("add", note)])
        assert ran.code == 1
        assert len(ran.err.splitlines()) == 1
        assert str(home.root) in ran.err
    finally:
        for place in places:
            place.chmod(0o700)


def test_invalid_utf8_is_read_with_a_warning(home: Home, tmp_path: Path) -> None:
    """Bytes that are no UTF-8 are read as what they probably are, and the reader is told."""
    note = tmp_path / "latin.txt"
    note.write_bytes("Un café, une crème brûlée, déjà vu à Orléans.".encode("latin-1"))
    ran = home.run("add", note, "--json")
    assert ran.code == 0
    assert "not UTF-8" in ran.json["problems"][0]["reason"]
    assert home.run("search", "crème", "--json").json["hits"]


def test_an_unknown_extension_named_itself_is_taken_in(home: Home, tmp_path: Path) -> None:
    """What a person names is judged by its bytes, not by its name."""
    note = tmp_path / "note.wibble"
    note.write_text(GOOD)
    assert home.run("add", note, "--json").json["added"] == 1


QUERIES = [
    "",
    " ",
    "?!...;",
    '"',
    '"foo" AND (bar OR',
    "title:good",
    "-good",
    "*",
    "~",
    "good~2^3",
    "[a TO z]",
    "good\\",
    "' OR 1=1 --",
    "good\x00tea",
    "\ud800good",
    "\U0001f375",
    "a" * 10_000,
    "good " * 200_000,
]


def test_no_query_is_an_error(home: Home, tmp_path: Path) -> None:
    """Signs, operators, NUL, lone surrogates and a megabyte are answered, one result each."""
    note = tmp_path / "good.md"
    note.write_text(GOOD)
    home.run("add", note)
    lines = [json.dumps({"_id": n, "text": text}) for n, text in enumerate(QUERIES)]
    # JSON may carry a lone surrogate as an escape; what cannot be decoded is a bad line.
    ran = home.run("search", "--batch", "-", stdin="\n".join(lines))
    answers: list[dict[str, Any]] = [json.loads(line) for line in ran.out.splitlines()]
    assert len(answers) == len(QUERIES)
    by_query = dict(zip(QUERIES, answers, strict=True))
    for query in ("", " ", "?!...;", "*", "~", '"'):
        assert by_query[query]["hits"] == []
        assert by_query[query]["warnings"] == ["the query has no words to search for"]
    for query in ("title:good", "-good", "good~2^3", "good\\", "good\x00tea", "good " * 200_000):
        assert by_query[query]["hits"][0]["title"] == "Good"
    assert "was cut to its first" in by_query["good " * 200_000]["warnings"][0]


@pytest.mark.parametrize("query", ["", "?!", '"foo" AND (bar OR', b"good\xff\xfe", "--", "-x"])
def test_odd_queries_as_arguments(home: Home, tmp_path: Path, query: str | bytes) -> None:
    """The same from the command line, invalid UTF-8 included; JSON stays whole."""
    note = tmp_path / "good.md"
    note.write_text(GOOD)
    home.run("add", note)
    argv: list[Any] = [*home.argv("search", "--json", "--"), query]
    ran = run(argv)
    assert ran.code == 0
    assert ran.json["query"] == (query if isinstance(query, str) else "good\ufffd\ufffd")


def test_odd_bytes_in_other_arguments(home: Home, tmp_path: Path) -> None:
    """Tags and titles that are no UTF-8 are mended, not a crash."""
    note = tmp_path / "good.md"
    note.write_text(GOOD)
    argv: list[Any] = home.argv("add", note, "--tags")
    ran = run([*argv, b"caf\xe9", "--title", b"\xff\x00"[:1], "--json"])
    assert ran.code == 0
    (row,) = home.run("ls", "--json").json["docs"]
    assert (row["tags"], row["title"]) == (["caf\ufffd"], "\ufffd")
    assert run([*home.argv("show"), b"d\xff\xff\xff"]).code == 4


def test_names_that_the_locale_cannot_say(home: Home, tmp_path: Path) -> None:
    """Files of any name are taken in and found in a locale that knows ASCII alone."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "Grüße – 漢字.md").write_text("# Grüße\n\nquince", "utf-8")
    (folder / os.fsdecode(b"caf\xe9.md")).write_text("# Kaffee\n\nquince", "utf-8")
    plain = surroundings(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    added = home.run("add", "-r", folder, "--json", env=plain)
    assert (added.code, added.err) == (0, "")
    for env in (plain, None):
        found = home.run("search", "Grüße quince", "--json", env=env)
        assert {hit["title"] for hit in found.json["hits"]} == {"Grüße", "Kaffee"}
    assert home.run("add", "-r", folder, "--json").json["unchanged"] == 2
    assert (
        home.run("add", folder / "Grüße – 漢字.md", env=plain).out == "1 unchanged of 1 scanned\n"
    )

"""Mailboxes and mails, by the real command: each mail is a doc, counted, kept and removed."""
# Long because every form in which mail comes has its sample here.

import io
import mailbox
import os
import zipfile
from collections.abc import Callable, Iterable
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from commands import Home, Ran, accounted, surroundings
from test_cli_bad_input import pdf

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def mail(number: int, text: str = "", **headers: str) -> EmailMessage:
    """A mail with a subject and an id of its own; headers with `_` for `-`."""
    message = EmailMessage()
    given = {
        "From": "Ada Byron <ada@example.org>",
        "To": '"Cy, Dr" <cy@example.net>',
        "Date": f"Mon, 02 Nov 2026 10:{number % 60:02}:00 +0100",
        "Subject": f"Kettle {number}",
        "Message-ID": f"<kettle{number}@example.org>",
    }
    for name, value in {
        **given,
        **{key.replace("_", "-"): headers[key] for key in headers},
    }.items():
        if value:
            message[name] = value
    message.set_content(text or f"Kettle number {number} hums.\n\nFrom here on it is quiet.\n")
    return message


def write(path: Path, mails: Iterable[EmailMessage | bytes]) -> Path:
    """A mailbox of these mails."""
    path.unlink(missing_ok=True)
    box = mailbox.mbox(path)
    for message in mails:
        box.add(message)
    box.close()
    return path


def docx(text: str) -> bytes:
    """A document of one paragraph."""
    paragraph = f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as target:
        body = f'<w:document xmlns:w="{_W}"><w:body>{paragraph}</w:body></w:document>'
        target.writestr("word/document.xml", body)
    return out.getvalue()


def rows(home: Home, *options: str) -> dict[str, str]:
    """Doc ids by what follows the mailbox in their sources."""
    listed = home.run("ls", "--json", "--limit", "0", *options).json["docs"]
    return {row["source"].rpartition("#")[2]: row["doc_id"] for row in listed}


def counts(ran: Ran, kind: str = "mails") -> dict[str, int]:
    """What is not zero of the mails or attachments of a report, whose sum is right."""
    report: dict[str, Any] = ran.json
    assert "sources" in report or accounted(report)
    parts = report[kind]
    outcomes = ("added", "updated", "unchanged", "resurrected", "skipped", "failed")
    assert parts["scanned"] == sum(parts[name] for name in outcomes)
    return {name: count for name, count in parts.items() if count and name != "scanned"}


def test_each_mail_is_a_doc(tmp_path: Path) -> None:
    """Found by its words, with its date, dated and named by its id; the file counts once."""
    home, box = Home(tmp_path / "home"), write(tmp_path / "a.mbox", map(mail, range(5)))
    added = home.run("add", box)
    assert (added.code, added.out) == (0, "1 added of 1 scanned\nmails: 5 added\n")
    hit = home.run("search", "kettle number 3", "--json", "-k", "1").json["hits"][0]
    assert hit["source"] == f"{box}#kettle3@example.org"
    assert (hit["title"], hit["date"]) == ("Kettle 3", "2026-11-02T10:03:00+01:00")
    assert hit["mail"]["sender"] == "Ada Byron <ada@example.org>"
    assert "From here on it is quiet." in home.run("export", hit["doc_id"]).out
    assert hit["freshness"] == "fresh"
    assert rows(home, "--source", str(box)).keys() == {f"kettle{n}@example.org" for n in range(5)}
    assert home.run("check").out.endswith("all is well\n")


def test_mails_come_and_go_with_their_mailbox(tmp_path: Path) -> None:
    """Appended mails are added, deleted ones removed; all others keep their docs."""
    home, box = Home(tmp_path / "home"), tmp_path / "in" / "a.mbox"
    box.parent.mkdir()
    write(box, map(mail, range(20)))
    home.run("add", box.parent)
    before = rows(home)
    write(box, map(mail, [*range(1, 22)]))
    report = home.run("sync-all", "--interval-min", "0", "--json")
    assert counts(report) == {"added": 2, "unchanged": 19, "removed": 1}
    assert report.json["updated"] == report.json["scanned"] == 1
    after = rows(home)
    assert "kettle0@example.org" not in after
    assert before.items() - after.items() == {
        ("kettle0@example.org", before["kettle0@example.org"])
    }
    write(box, map(mail, range(22)))
    assert counts(home.run("add", box, "--json")) == {"resurrected": 1, "unchanged": 21}
    assert rows(home).items() >= before.items()


def test_many_that_vanish_are_held_back(tmp_path: Path) -> None:
    """As files of a folder are: until somebody says that it was meant."""
    home, box = Home(tmp_path / "home"), tmp_path / "in" / "a.mbox"
    box.parent.mkdir()
    write(box, map(mail, range(30)))
    home.run("add", box.parent)
    write(box, map(mail, range(5)))
    (box.parent / "b.txt").write_text("Something else.")
    for rest in ("1 added, 1 unchanged", "2 unchanged"):
        held = home.run("sync-all", "--interval-min", "0")
        assert held.code == 6
        line = f"{box.parent}: synced, {rest}, removals of 1 file held back"
        assert held.out.splitlines()[0] == line
        assert held.err == (
            f"kb: held back: {box}: 25 of 30 docs have vanished\n"
            "kb: removals of 1 source held back; if they are right, add --accept-deletions\n"
        )
        assert len(rows(home)) == 31
    named = home.run("add", box)
    assert named.code == 6
    assert named.err == (
        f"kb: held back: {box}: 25 of 30 docs have vanished\n"
        "kb: removals of 1 file held back; if they are right, add --accept-deletions\n"
    )
    assert f"failed: {box}: 25 of 30 docs have vanished" in home.run("sources").out
    accepted = home.run("sync-all", "--interval-min", "0", "--accept-deletions", "--json")
    assert counts(accepted) == {"unchanged": 5, "removed": 25}
    assert len(rows(home)) == 6
    box.unlink()
    gone = home.run("sync-all", "--interval-min", "0")
    assert (gone.code, len(rows(home))) == (0, 1)


def test_what_a_person_removed_stays_out(tmp_path: Path) -> None:
    """However often its mailbox is read again, until `kb add` names that."""
    home, box = Home(tmp_path / "home"), tmp_path / "in" / "a.mbox"
    box.parent.mkdir()
    write(box, map(mail, range(4)))
    home.run("add", box.parent)
    home.run("rm", rows(home)["kettle2@example.org"], "--yes")
    write(box, map(mail, range(5)))
    synced = home.run("sync-all", "--interval-min", "0", "--json")
    assert counts(synced) == {"added": 1, "unchanged": 3, "skipped": 1}
    assert "kettle2@example.org" not in rows(home)
    assert counts(home.run("add", box, "--json"))["resurrected"] == 1


def test_ids_that_are_missing_or_double(tmp_path: Path) -> None:
    """Such mails are named by their bytes; the same mail twice is one doc."""
    mails = [
        mail(1),
        mail(2, Message_ID=""),
        mail(1, "Another mail with the id of the first.\n"),
        mail(1),
        mail(2, Message_ID=""),
    ]
    home, box = Home(tmp_path / "home"), write(tmp_path / "a.mbox", mails)
    assert counts(home.run("add", box, "--json")) == {"added": 3, "unchanged": 2}
    before = rows(home)
    assert sorted(key[:7] for key in before) == ["kettle1", "sha256-", "sha256-"]
    write(box, [mail(3), *mails])
    assert counts(home.run("add", box, "--json")) == {"added": 1, "unchanged": 5}
    assert rows(home).items() > before.items()


def test_a_kill_in_the_middle(tmp_path: Path) -> None:
    """The next call goes on behind what was committed: no mail is lost, none is there twice."""
    home, box = Home(tmp_path / "home"), write(tmp_path / "a.mbox", map(mail, range(300)))
    armed = surroundings(KB_FAILPOINTS="ingest.after_commit=kill@2")
    assert home.run("add", box, "--no-wait", env=armed).code == -9
    kept = rows(home)
    assert 0 < len(kept) < 300
    went_on = counts(home.run("add", box, "--no-wait", "--json"))
    assert went_on == {"added": 300 - len(kept), "unchanged": len(kept)}
    assert rows(home).items() > kept.items()
    assert len(rows(home)) == 300


def test_the_limit_is_for_a_mail(tmp_path: Path) -> None:
    """A mailbox may be larger; a larger mail is named and left out, the others come in."""
    large = mail(7, "A long kettle story.\n" * 20_000)
    mails = [*map(mail, range(3)), large, *map(mail, range(3, 6))]
    home, box = Home(tmp_path / "home"), write(tmp_path / "a.mbox", mails)
    limit = ("--cfg", "ingest.file_bytes_max=100000")
    report = home.run(*limit, "add", box, "--json")
    assert box.stat().st_size > 100_000
    assert (report.code, counts(report)) == (0, {"added": 6, "skipped": 1})
    (problem,) = report.json["problems"]
    assert problem["source"] == f"{box}#kettle7@example.org"
    assert "over the limit of 100,000" in problem["reason"]
    assert counts(home.run("add", box, "--json")) == {"added": 1, "unchanged": 6}


def with_attachments() -> EmailMessage:
    """A mail with files of many kinds, one of them a mail with a file of its own."""
    message = mail(1, "See what is attached.\n")
    inner = mail(2, "The inner samovar.\n")
    inner.add_attachment("# Deep\n\nA deep gong.\n", subtype="markdown", filename="deep.md")
    octets = {"maintype": "application", "subtype": "octet-stream"}
    message.add_attachment(pdf("The paper urn."), **octets, filename="paper.pdf")
    message.add_attachment(docx("The office ladle."), **octets, filename="Übersicht 1.docx")
    message.add_attachment(
        b"\x89PNG\r\n\x1a\n..", maintype="image", subtype="png", filename="a.png"
    )
    message.add_attachment("sealed", subtype="plain", filename="signature.asc")
    message.add_attachment(b"\0\1\2", **octets, filename="blob.bin")
    message.add_attachment(inner)
    return message


def attached(source: str) -> str:
    """The name of an attachment, without the digests in its source."""
    return source.rpartition("/")[2]


@pytest.mark.parametrize("form", ["mbox", "eml"])
def test_attachments_are_docs_that_lead_to_their_mail(tmp_path: Path, form: str) -> None:
    """Of formats that kb reads; other files are named in the text of the mail."""
    home, file = Home(tmp_path / "home"), tmp_path / f"a.{form}"
    if form == "mbox":
        write(file, [with_attachments()])
    else:
        file.write_bytes(with_attachments().as_bytes())
    added = home.run("add", file)
    assert "attachments: 5 added" in added.out
    ids = {attached(key): doc_id for key, doc_id in rows(home).items() if "/" in key}
    if form == "eml":
        ids.pop("a.eml", None)
    names = {"paper.pdf", "%C3%9Cbersicht%201.docx", "signature.asc", "Kettle 2.eml", "deep.md"}
    assert {name.replace("%20", " ") for name in ids} == {
        name.replace("%C3%9C", "Ü").replace("%20", " ") for name in names
    }
    for words, name in (("paper urn", "paper.pdf"), ("deep gong", "deep.md")):
        (hit, *_) = home.run("search", words, "--from", "ada@", "--json").json["hits"]
        assert attached(hit["source"]) == name
        (link,) = home.run("show", hit["doc_id"], "--json").json["links"]
        assert link["title"] == ("Kettle 1" if name == "paper.pdf" else "Kettle 2")
    (whole, *_) = home.run("search", "See what is attached", "--json").json["hits"]
    assert len(home.run("show", whole["doc_id"], "--json").json["backlinks"]) == 4
    assert "a.png, blob.bin" in home.run("export", whole["doc_id"]).out
    home.run("rm", ids["paper.pdf"], "--yes")
    again = home.run("add", file, "--json")
    if form == "mbox":
        assert counts(again, "attachments")["resurrected"] == 1
        assert set(rows(home).values()) >= set(ids.values())
    assert home.run("check").out.endswith("all is well\n")


def test_an_edited_mail_loses_what_it_no_longer_has(tmp_path: Path) -> None:
    """And a mail that moves takes its attachments along."""
    home, folder = Home(tmp_path / "home"), tmp_path / "in"
    folder.mkdir()
    file = folder / "a.eml"
    file.write_bytes(with_attachments().as_bytes())
    home.run("add", folder)
    before = set(rows(home).values())
    file.rename(folder / "b.eml")
    assert home.run("sync-all", "--interval-min", "0").code == 0
    assert set(rows(home).values()) == before
    assert all("b.eml" in row["source"] for row in home.run("ls", "--json").json["docs"])
    smaller = mail(1, "See what is attached.\n")
    smaller.add_attachment("# New\n", subtype="markdown", filename="new.md")
    (folder / "b.eml").write_bytes(smaller.as_bytes())
    changed = home.run("sync-all", "--interval-min", "0", "--json")
    assert counts(changed, "attachments") == {"added": 1, "removed": 5}
    assert len(rows(home)) == 2


def test_threads_are_linked(tmp_path: Path) -> None:
    """An answer leads to the mail that it answers, in whatever file that is."""
    home, folder = Home(tmp_path / "home"), tmp_path / "in"
    folder.mkdir()
    write(folder / "a.mbox", [mail(0), mail(1, In_Reply_To="<kettle0@example.org>")])
    late = mail(
        2,
        References="<kettle0@example.org> <kettle1@example.org>",
        In_Reply_To="<kettle1@example.org>",
    )
    (folder / "late.eml").write_bytes(late.as_bytes())
    home.run("add", folder)
    ids = rows(home)
    shown = home.run("show", ids["kettle0@example.org"], "--json").json
    assert {row["title"] for row in shown["backlinks"]} == {"Kettle 1", "Kettle 2"}
    answers = home.run("ls", "--linked-to", ids["kettle1@example.org"], "--json").json["docs"]
    assert [row["title"] for row in answers] == ["Kettle 2"]
    (late_id,) = (doc_id for key, doc_id in ids.items() if key.endswith("late.eml"))
    links = home.run("show", late_id, "--json").json["links"]
    assert [row["title"] for row in links] == ["Kettle 1", "Kettle 0"]


def thread(count: int) -> list[EmailMessage]:
    """Each answer stands above the whole thread before it."""
    mails, before = [], ""
    for number in range(count):
        text = f"Word kettle{number} and {number} things that are said of it.\n{before}"
        mails.append(mail(number, text, Subject="Re: Kettle"))
        quoted = "".join(f"> {line}\n" for line in text.splitlines())
        before = f"\nOn 2 Nov 2026 at 10:{number:02} Ada <ada@example.org> wrote:\n{quoted}"
    return mails


def test_a_thread_is_found_in_its_last_mail_and_by_its_own(tmp_path: Path) -> None:
    """Who has the last mail alone finds the first in it; who has all finds each mail itself."""
    home, mails = Home(tmp_path / "home"), thread(12)
    home.run("add", write(tmp_path / "a.mbox", mails[-1:]))
    for wanted in ("kettle2", "kettle11"):
        hits = home.run("search", wanted, "--json", "-k", "3").json["hits"]
        assert wanted in hits[0]["text"]
        assert [wanted in hit["text"] for hit in hits[1:]] == [False] * len(hits[1:])
    home.run("add", write(tmp_path / "a.mbox", mails))
    for mode in ("lexical", "hybrid"):
        for number in (2, 7):
            ran = home.run("search", f"kettle{number} things", "--json", "-k", "12", "--mode", mode)
            hits = ran.json["hits"]
            assert hits[0]["source"].endswith(f"#kettle{number}@example.org")
            assert not hits[0]["heading"][-1].startswith("Earlier mail")
            one = home.run(
                "search", f"kettle{number} things", "--json", "-k", "1", "--mode", mode
            ).json["hits"]
            assert [hit["chunk_id"] for hit in one] == [hits[0]["chunk_id"]]
    stats = home.run("stats", "--json").json
    # Each mail is embedded as itself, and once as what others repeat.
    assert stats["passages"] == 12 + 11 * 12 // 2
    assert stats["vectors"] <= 12 + 11


def test_people_are_filters(tmp_path: Path) -> None:
    """By name or address, in any case, among all that it is to."""
    mails = [
        mail(1, To="Bea <bea@example.com>", Cc="=?utf-8?q?J=C3=BCrgen?= <j@example.com>"),
        mail(2, From="Dora <dora@example.com>"),
    ]
    home = Home(tmp_path / "home")
    home.run("add", write(tmp_path / "a.mbox", mails))

    def listed(*options: str) -> set[str]:
        return {row["title"] for row in home.run("ls", "--json", *options).json["docs"]}

    assert listed("--from", "DORA") == {"Kettle 2"}
    assert listed("--from", "ada@example.org") == listed("--to", "jürgen") == {"Kettle 1"}
    assert listed("--to", "cy, dr") == {"Kettle 2"}
    assert listed("--from", "dora", "--to", "bea") == set()
    hits = home.run("search", "kettle", "--to", "bea@", "--json").json["hits"]
    assert [hit["title"] for hit in hits] == ["Kettle 1"]
    shown = home.run("show", hits[0]["doc_id"]).out
    assert "from  Ada Byron <ada@example.org>" in shown


def test_charsets_and_quotes(tmp_path: Path) -> None:
    """A wrong charset, none, and an unknown one lose no word; quoted mails come last."""
    quoted = "<p>On Monday Bob wrote:</p><blockquote>" + "<p>old words</p>" * 9 + "</blockquote>"
    page = mail(4)
    page.set_content(f"<html><body><p>Fresh words.</p>{quoted}</body></html>", subtype="html")
    raw = b"From: a@b.c\nSubject: %s\nMessage-ID: <%s@x>\nContent-Type: text/plain%s\n\n%s\n"
    mails: list[EmailMessage | bytes] = [
        raw % ("Größe".encode("latin-1"), b"latin", b"", "Die Größe zählt.".encode("latin-1")),
        raw % (b"Odd", b"odd", b'; charset="x-nonsense"', "naïve café".encode()),
        raw % (b"=?koi8-r?B?8NLJ18XU?=", b"koi", b"; charset=koi8-r", "Привет".encode("koi8-r")),
        page,
    ]
    home = Home(tmp_path / "home")
    assert counts(home.run("add", write(tmp_path / "a.mbox", mails), "--json")) == {"added": 4}
    ids = rows(home)
    assert "Die Größe zählt." in home.run("export", ids["latin@x"]).out
    assert "naïve café" in home.run("export", ids["odd@x"]).out
    assert home.run("export", ids["koi@x"]).out.count("Привет") == 2
    text = home.run("export", ids["kettle4@example.org"]).out
    assert "\n\nFresh words.\n\n## Earlier mail: On Monday Bob wrote\n\nold words\n" in text


def test_what_is_no_mail_is_named(tmp_path: Path) -> None:
    """A file that is no mailbox, an empty one, and a mail without a head."""
    home = Home(tmp_path / "home")
    (tmp_path / "no.mbox").write_text("A text about kettles.\n")
    (tmp_path / "empty.mbox").touch()
    odd = write(tmp_path / "odd.mbox", [mail(1), b"X-Nothing: 1\n\nno head\n"])
    report = home.run("add", tmp_path / "no.mbox", tmp_path / "empty.mbox", odd, "--json")
    assert report.code == 3
    assert (report.json["added"], report.json["skipped"], report.json["failed"]) == (1, 1, 1)
    assert counts(report) == {"added": 1, "failed": 1}
    reasons = " ".join(problem["reason"] for problem in report.json["problems"])
    assert "it is no mailbox" in reasons
    assert "no header of a mail" in reasons


def test_a_mailbox_that_was_one_doc_is_replaced(
    tmp_path: Path, old_mailbox: Callable[[Home, Path], None]
) -> None:
    """At the next reading, and without a double."""
    home, folder = Home(tmp_path / "home"), tmp_path / "in"
    folder.mkdir()
    box = write(folder / "a.mbox", map(mail, range(3)))
    old_mailbox(home, box)
    assert [row["source"] for row in home.run("ls", "--json").json["docs"]] == [os.fspath(box)]
    home.run("add", folder)
    assert rows(home).keys() == {f"kettle{n}@example.org" for n in range(3)}
    assert counts(home.run("add", folder, "--json")) in ({"unchanged": 3}, {})


@pytest.fixture
def old_mailbox() -> Callable[[Home, Path], None]:
    """Takes a mailbox in as one doc, as an earlier kb did."""

    def take(home: Home, box: Path) -> None:
        from kb.intake.canonicalize import CanonicalizeInput, canonicalize
        from kb.intake.ingest.ingest import Ingestor
        from kb.intake.ingest.request import IngestOptions, IngestRequest
        from kb.intake.sync.read import read_file
        from kb.model.ids import sha256_hex
        from kb.model.source import file_lsid
        from kb.store.content.files import ContentFiles
        from kb.store.content.layout import HomePaths
        from kb.store.store import Store

        home.run("add", "-", stdin="A first text, so that there is a home.")
        home.run("rm", *rows(home).values(), "--yes")
        data, stamp = read_file(box, 1 << 20, 0)
        source = CanonicalizeInput(data=data, mime="application/mbox", name=box.name)
        request = IngestRequest(
            lsid=file_lsid(box),
            source=str(box),
            kind="file",
            canonical=canonicalize(source),
            raw=data,
            raw_sha256=sha256_hex(data),
            extension="mbox",
            canonicalizer="mbox-1",
            ingest_options=IngestOptions(),
            stamp=stamp,
        )
        with Store.open(home.root / "store") as store:
            ingestor = Ingestor(store, ContentFiles(HomePaths(home.root)))
            ingestor.commit([ingestor.stage(request)])

    return take

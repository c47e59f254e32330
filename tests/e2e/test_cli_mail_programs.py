"""Mails as programs keep them, by the real command: a Maildir, and those of Outlook."""

import mailbox
from pathlib import Path

import pytest
from commands import Home
from test_cli_mail import mail, rows

REAL = Path(__file__).resolve().parents[3] / "shared/data/files"


def test_a_folder_of_mails(tmp_path: Path) -> None:
    """The mails of a Maildir are docs, and stay the same ones when they are read and answered."""
    home, box = Home(tmp_path / "home"), tmp_path / "Mail"
    maildir = mailbox.Maildir(box)
    keys = [maildir.add(mail(number)) for number in range(3)]
    maildir.close()
    (box / "dovecot-uidlist").write_text("3 V1 N4")
    report = home.run("add", box, "--json")
    assert (report.json["added"], report.json["skipped"]) == (3, 1)
    before = set(rows(home).values())
    assert len(home.run("ls", "--json", "--from", "ada").json["docs"]) == 3
    for key in keys:
        (box / "new" / key).rename(box / "cur" / f"{key}:2,S")
    assert home.run("sync-all", "--interval-min", "0").code == 0
    assert set(rows(home).values()) == before
    (box / "cur" / f"{keys[0]}:2,S").unlink()
    assert home.run("sync-all", "--interval-min", "0").code == 0
    assert len(rows(home)) == 2


def test_mails_of_outlook(tmp_path: Path) -> None:
    """Have people, ids and attachments, as all others."""
    found = sorted(REAL.glob("**/*msg_with_attachment.msg"))
    if not found:
        pytest.skip("no mail of Outlook here")
    home = Home(tmp_path / "home")
    file = tmp_path / "a.msg"
    file.write_bytes(found[0].read_bytes())
    added = home.run("add", file)
    assert "attachments: 1 added, 1 failed" in added.out
    assert added.err.endswith("kb: 1 attachment failed\n")
    listed = home.run("ls", "--from", "alice@", "--to", "bob@", "--json").json["docs"]
    assert {row["source"].rpartition("/")[2] for row in listed} == {"a.msg", "test.txt"}


def test_mailboxes_of_thunderbird(tmp_path: Path) -> None:
    """Have no ending, but an index beside them; their mails are docs as those of any mailbox."""
    home, folder = Home(tmp_path / "home"), tmp_path / "Mail" / "Local Folders"
    (folder / "Archive.sbd").mkdir(parents=True)
    for first, place in enumerate((folder / "Inbox", folder / "Archive.sbd" / "2023")):
        box = mailbox.mbox(place)
        for number in range(2):
            box.add(mail(2 * first + number))
        box.close()
        Path(f"{place}.msf").write_text("// <!-- <mdb:mork:z v='1.4'/> -->")
    (folder / "notes").write_text("no mailbox, and no index")
    report = home.run("add", tmp_path / "Mail", "--json").json
    assert (report["added"], report["skipped"], report["failed"]) == (2, 3, 0)
    assert len(rows(home)) == 4
    inbox = home.run("ls", "--json", "--source", folder / "Inbox").json["docs"]
    assert len(inbox) == 2
    home.run("worker", "--drain")
    found = home.run("search", "kettle", "--source", folder / "Inbox", "--json").json["hits"]
    assert {hit["source"].partition("#")[0] for hit in found} == {str(folder / "Inbox")}
    assert home.run("add", tmp_path / "Mail").out.startswith("2 unchanged")

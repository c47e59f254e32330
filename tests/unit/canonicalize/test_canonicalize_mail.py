"""What does a mail say that nothing else says, whatever program wrote it?"""

import pytest

from kb.intake.canonicalize import detect_mime, eml

HEAD = "From: a@example.org\nSubject: {}\nMIME-Version: 1.0\n"
OUTLOOK = """
________________________________
From: Ada Byron <ada@example.org>
Sent: Monday, November 2, 2026 10:00 AM
To: Carl <carl@example.org>
Subject: Boiler

Old words
"""
GERMAN = """
-----Ursprüngliche Nachricht-----
Von: Ada
Gesendet: Montag
Betreff: Kessel

Old words
"""
PAGE = """<p><b>Von:</b> Ada<br><b>Gesendet:</b> Montag<br><b>An:</b> Carl
<br><b>Betreff:</b> Kessel</p><p>Old words</p>"""
APPLE = """
> Begin forwarded message:
>
> From: Eve
> Old words
"""


def read(body: str, subject: str = "Re: Boiler", kind: str = "text/plain") -> str:
    """The text of a mail with one part."""
    head = HEAD.format(subject) + f"Content-Type: {kind}; charset=utf-8\n\n"
    return eml.read((head + body).encode(), "a.eml").markdown


@pytest.mark.parametrize(
    ("history", "kind"), [(OUTLOOK, "text/plain"), (GERMAN, "text/plain"), (PAGE, "text/html")]
)
def test_an_earlier_mail_below_an_answer_is_counted(history: str, kind: str) -> None:
    """Whatever stands above it, in the languages of its programs; a mail passed on stays."""
    above = "New words\n" if kind == "text/plain" else "<p>New words</p>"
    answer = read(above + history, kind=kind)
    assert "New words" in answer
    assert "Old words" not in answer
    assert "of an earlier mail]" in answer
    for subject in ("Fwd: Boiler", "WG: Kessel"):
        assert "Old words" in read(above + history, subject, kind)
    assert "Old words" in read(history.lstrip("\n"), kind=kind)


def test_a_mail_that_is_passed_on_keeps_what_it_passes_on() -> None:
    """Quoted lines of an answer are counted, those of a forwarded mail are its text."""
    assert "Old words" in read("See below.\n" + APPLE, "Boiler")
    page = "<p>Begin forwarded message:</p><blockquote><p>Old words</p>" + "<p>x</p>" * 4
    assert "Old words" in read(page + "</blockquote>", "Boiler", "text/html")


def parts(kind: str, *inner: tuple[str, str]) -> bytes:
    """A mail with these parts."""
    head = HEAD.format("Parts") + f"Content-Type: multipart/{kind}; boundary=B\n\n"
    bodies = (f"--B\nContent-Type: {mime}\n\n{text}\n" for mime, text in inner)
    return (head + "".join(bodies) + "--B--\n").encode()


def test_a_stub_beside_a_page_is_not_the_mail() -> None:
    """Of two forms the plain one is taken, unless it says next to nothing of the other."""
    page = "<p>" + "The pumpkins are ripe. " * 9 + "</p>"
    stub = parts("alternative", ("text/plain", "View in a browser."), ("text/html", page))
    assert "pumpkins" in eml.read(stub, "a.eml").markdown
    both = parts("alternative", ("text/plain", "Ripe pumpkins."), ("text/html", "<p>Page.</p>"))
    assert "Page." not in eml.read(both, "a.eml").markdown
    footer = parts("mixed", ("text/html", page), ("text/plain", "The list's footer."))
    found = eml.read(footer, "a.eml").markdown
    assert "pumpkins" in found
    assert "The list's footer." in found


def test_an_invitation_is_a_file_once() -> None:
    """Programs send it as a form of the text, and many as a file, too."""
    event = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Party\nEND:VEVENT\nEND:VCALENDAR"
    forms = (("text/plain", "You are invited."), ("text/calendar; method=REQUEST", event))
    found = eml.read(parts("alternative", *forms), "a.eml")
    assert [(file.name, file.mime) for file in found.attachments] == [
        ("invitation.ics", "text/calendar")
    ]
    named = ("text/calendar; name=invite.ics", event.replace("\n", "\r\n"))
    for inner in ((*forms, named), (forms[0], named, forms[1])):
        found = eml.read(parts("mixed", *inner), "a.eml")
        assert len(found.attachments) == 1


def test_heads_without_an_encoding() -> None:
    """As UTF-8, as the text's encoding, and of encodings that no one knows."""
    for charset in ("utf-8", "iso-8859-1"):
        head = "From: J\u00fcrgen <j@example.org>\nSubject: Gr\u00fc\u00dfe\n"
        head += f"Content-Type: text/plain; charset={charset}\n\nHallo"
        found = eml.read(head.encode(charset), "a.eml")
        assert found.title == "Gr\u00fc\u00dfe"
        assert found.mail is not None
        assert found.mail.sender == "J\u00fcrgen <j@example.org>"
    odd = b"From: =?x-nobody?Q?J=C3=BCrgen?= <j@example.org>\nSubject: x\n\nHallo"
    found = eml.read(odd, "a.eml")
    assert found.mail is not None
    assert found.mail.sender == "J\u00fcrgen <j@example.org>"


def test_a_mail_is_told_without_an_ending() -> None:
    """By its heads; a text that begins like one is a text."""
    mail = b"Return-Path: <a@example.org>\r\nReceived: from x\r\n by y\r\nFrom: a\r\n\r\nHallo"
    assert detect_mime(mail, "1795551269.M96P2.host:2,S") == "message/rfc822"
    assert detect_mime(b"From - Mon Nov 2 10:00:00 2026\n" + mail, "Inbox") == "application/mbox"
    assert detect_mime(mail, "a.txt") == "text/plain"
    assert detect_mime(b"From: Ada\nTo: Bea\n\nA letter.", "letter") == "text/plain"


def test_a_mail_with_its_length_above_it() -> None:
    """And notes of its program below it."""
    mail = b"From: a@example.org\nSubject: Apple\n\nHallo\n"
    data = b"%d \n%s<?xml version='1.0'?><plist/>" % (len(mail), mail)
    found = eml.read(data, "1.emlx").markdown
    assert "Hallo" in found
    assert "plist" not in found


def test_the_labels_of_a_mail_are_its_tags() -> None:
    """As an export of Gmail writes them, and as the standard does."""
    labels = (
        "X-Gmail-Labels: =?UTF-8?Q?Ge=C3=B6ffnet,Haus/Heizung?=\nKeywords: boiler, Haus/Heizung\n"
    )
    mail = eml.read((labels + HEAD.format("Boiler") + "\nNew words\n").encode(), "a.eml")
    assert mail.tags == ("Geöffnet", "Haus/Heizung", "boiler")

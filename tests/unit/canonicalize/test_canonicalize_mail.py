"""What does a mail say that nothing else says, whatever program wrote it?"""

import itertools

import pytest

from kb.intake.canonicalize import detect_mime, eml
from kb.model.text import Canonical

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
    return mail(body, subject, kind).markdown


def mail(body: str, subject: str = "Re: Boiler", kind: str = "text/plain") -> Canonical:
    """A mail with one part."""
    head = HEAD.format(subject) + f"Content-Type: {kind}; charset=utf-8\n\n"
    return eml.read((head + body).encode(), "a.eml")


def sections(body: str, kind: str = "text/plain") -> tuple[str, list[str]]:
    """What a mail says itself, and the earlier mails that it repeats."""
    found = mail(body, kind=kind)
    assert found.mail is not None
    starts = [0, *found.mail.earlier, len(found.markdown)]
    own, *earlier = (found.markdown[a:b] for a, b in itertools.pairwise(starts))
    return own, earlier


@pytest.mark.parametrize(
    ("history", "kind"), [(OUTLOOK, "text/plain"), (GERMAN, "text/plain"), (PAGE, "text/html")]
)
def test_an_earlier_mail_below_an_answer_is_a_section(history: str, kind: str) -> None:
    """Named by its head, in the languages of its programs; a mail passed on stays as it is."""
    above = "New words\n" if kind == "text/plain" else "<p>New words</p>"
    own, earlier = sections(above + history, kind)
    assert own.endswith("New words\n\n")
    assert len(earlier) == 1
    assert earlier[0].startswith("## Earlier mail: Ada")
    assert "Mon" in earlier[0].partition("\n")[0]
    assert earlier[0].endswith("Old words\n")
    for subject in ("Fwd: Boiler", "WG: Kessel"):
        passed_on = read(above + history, subject, kind)
        assert "Old words" in passed_on
        assert "Earlier mail" not in passed_on
    assert "Earlier mail" not in read(history.lstrip("\n"), kind=kind)


def test_a_mail_that_is_passed_on_is_no_earlier_mail() -> None:
    """It is the text of the mail that passes it on, unless that is an earlier one itself."""
    assert "Earlier mail" not in read("See below.\n" + APPLE, "Boiler")
    page = "<p>Begin forwarded message:</p><blockquote><p>Old words</p>" + "<p>x</p>" * 4
    passed_on = read(page + "</blockquote>", "Boiler", "text/html")
    assert "> Old words" in passed_on
    assert "Earlier mail" not in passed_on
    answer = "Thanks.\n\nOn 2 Nov 2026 Ada <ada@example.org> wrote:\n\n> See below.\n>\n"
    _, (earlier,) = sections(answer + APPLE.strip().replace("> ", "> > "))
    assert earlier.startswith("## Earlier mail: On 2 Nov 2026 Ada <ada@example.org> wrote\n")
    assert "> Old words" in earlier


ADA = "On Mon, Nov 2, 2026 at 10:00 AM Ada <ada@example.org>"
BUY = "Buy a kettle.\n"
GMAIL = """<div>It is fine.</div><div class="gmail_quote"><div class="gmail_attr">On Mon, Nov 2,
2026 at 10:00 AM Ada &lt;<a href="mailto:ada@example.org">ada@example.org</a>&gt; wrote:<br></div>
<blockquote><div>Does the kettle boil?</div><div class="gmail_quote"><div>On Sun, Nov 1, 2026
Bea &lt;bea@example.org&gt; wrote:<br></div><blockquote><p>Buy a kettle.</p></blockquote></div>
</blockquote></div>"""
PLAIN = """It is fine.

On Mon, Nov 2, 2026 at 10:00 AM Ada
<ada@example.org> wrote:

> Does the kettle boil?
>
> On Sun, Nov 1, 2026 Bea <bea@example.org> wrote:
>> Buy a kettle.
"""
INSIDE = """It is fine.<div><br><blockquote type="cite"><div>On Mon, Nov 2, 2026 at 10:00 AM Ada
&lt;<a href="mailto:ada@example.org">ada@example.org</a>&gt;
wrote:</div><br><div>Does the kettle boil?</div><blockquote type="cite">
<div>On Sun, Nov 1, 2026 Bea &lt;bea@example.org&gt; wrote:</div>
<div>Buy a kettle.</div></blockquote></blockquote></div>"""
UNMARKED = """It is fine.

On Mon, Nov 2, 2026 at 10:00 AM Ada <ada@example.org> wrote:
Does the kettle boil?

On Sun, Nov 1, 2026 Bea <bea@example.org> wrote:
Buy a kettle.
"""


@pytest.mark.parametrize(
    ("body", "kind"),
    [(GMAIL, "text/html"), (PLAIN, "text/plain"), (INSIDE, "text/html"), (UNMARKED, "text/plain")],
)
def test_each_mail_of_a_thread_is_a_section_whatever_quotes_it(body: str, kind: str) -> None:
    """Without the marks of quotes, so that two answers that repeat a mail say the same of it."""
    own, earlier = sections(body, kind)
    assert own.endswith("\n\nIt is fine.\n\n")
    first, second = (section.split("\n\n", 1) for section in earlier)
    assert first == [f"## Earlier mail: {ADA} wrote", "Does the kettle boil?\n\n"]
    assert second == ["## Earlier mail: On Sun, Nov 1, 2026 Bea <bea@example.org> wrote", BUY]


def test_quotes_between_answers_stay_where_they_are() -> None:
    """They say what is answered; only the quote that ends a mail is set apart."""
    between = "> Does it boil?\nYes.\n> Where is it?\nIn 3 places:\n\n"
    assert "> Where is it?\nIn 3 places:" in read(between)
    assert "Earlier mail" not in read(between)
    own, (earlier,) = sections(between + "> Old words\n> and\n> more\n\n-- \nCarl\n")
    assert own.endswith("In 3 places:\n\n-- \nCarl\n\n")
    assert earlier == "## Earlier mail\n\nOld words\nand\nmore\n"
    assert "> one line" in read("So it is.\n\n> one line\n")
    page = "<p>Hi.</p><blockquote><div>Is it</div><div>hot?</div></blockquote><p>Yes.</p>"
    assert "Hi.\n\n> Is it\n>\n> hot?\n\nYes." in read(page, kind="text/html")


def test_a_thread_without_end_is_bounded() -> None:
    """What is below the last mail that is told apart is a part of that."""
    text = "word0"
    for number in range(1, 80):
        quoted = "\n".join(f"> {line}" for line in text.split("\n"))
        text = f"word{number}\n\nOn 2 Nov 2026 Ada <a{number}@example.org> wrote:\n{quoted}"
    own, earlier = sections(text)
    assert "word79" in own
    assert len(earlier) == 50
    assert all(f"word{number}" in "".join(earlier) for number in range(79))


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

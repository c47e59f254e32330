"""Which lines of a mail are earlier mails that it answers? Each is a part of its own below it."""

import re
from typing import Final

from msgspec import Struct

EARLIER_MAX: Final = 50
"""So many earlier mails are told apart; what is below the last one is a part of it."""
_QUOTED_LINES_MIN: Final = 3
_MARKS: Final = r"[*_ \t]{0,8}"
# What programs write above the mail that an answer repeats, in the languages of their users.
_ORIGINAL: Final = re.compile(
    rf"^{_MARKS}-{{2,40}} ?(?:Original (?:Message|Appointment)|Ursprüngliche Nachricht"
    r"|Message d['’]origine|Mensaje original|Messaggio originale|Mensagem original"
    r"|Oorspronkelijk bericht|Originalmeddelande|Opprinnelig melding|Oprindelig meddelelse"
    r"|Alkuperäinen viesti|Wiadomość oryginalna|Исходное сообщение|原始邮件|原始郵件"
    r"|元のメッセージ|원본 메시지) ?-{2,40}[^\n]{0,80}$",
    re.MULTILINE | re.IGNORECASE,
)
_FROM: Final = "From|Von|De|Da|Van|Från|Fra|Lähettäjä|Od|От|发件人|寄件者|差出人|보낸 사람"
_SENT: Final = (
    "Sent|Date|Gesendet|Datum|Envoyé|Enviado(?: el)?|Fecha|Inviato|Data|Verzonden|Skickat|Sendt"
    "|Lähetetty|Wysłano|Дата|Отправлено|发送时间|寄件日期|日期|送信日時|보낸 날짜"
)
_SUBJECT: Final = (
    "Subject|Betreff|Objet|Asunto|Oggetto|Assunto|Onderwerp|Ämne|Emne|Aihe|Temat|Тема"
    "|主题|主題|主旨|件名|제목"
)
# The heads of a mail as text, of which others may stand between these three.
_HEADS: Final = re.compile(
    rf"(?:^[ \t]*_{{5,80}}[ \t]*\n{{1,3}})?"
    rf"^{_MARKS}(?:{_FROM}){_MARKS}[:：](?P<who>[^\n]{{0,400}})\n{{1,2}}"
    rf"(?P<others>(?:[^\n]{{1,400}}\n{{1,2}}){{0,3}}?)"
    rf"^{_MARKS}(?:{_SENT}){_MARKS}[:：](?P<when>[^\n]{{0,400}})\n{{1,2}}"
    rf"(?P<rest>(?:[^\n]{{1,2000}}\n{{1,2}}){{0,3}}?"
    rf"^{_MARKS}(?:{_SUBJECT}){_MARKS}[:：][^\n]{{0,1000}}$)",
    re.MULTILINE | re.IGNORECASE,
)
_WINDOW_CHARS: Final = 1 << 18
# A mail that is passed on says what it passes on; nobody else may have that text.
_FORWARD: Final = re.compile(
    r"(?:fwd?|wg|tr|rv|i|enc|vs|doorst|vb|пересл|转发|轉寄)\s*[:：]", re.IGNORECASE
)
_FORWARDED: Final = re.compile(
    r"^[>\s*]{0,8}(?:Begin forwarded message|-{2,40} ?Forwarded message|Anfang der weitergeleiteten"
    r"|-{2,40} ?Weitergeleitete Nachricht|Début du message (?:réexpédié|transféré)"
    r"|-{2,40} ?Message transféré)",
    re.MULTILINE | re.IGNORECASE,
)


# What programs end the line with that says who wrote what is quoted below it.
_WROTE: Final = re.compile(
    r"(?:wrote|writes|schrieb|écrit|escribió|escreveu|scritto|schreef|skrev|kirjoitti|napisał"
    r"|написал|пишет|写道|寫道)[^\n]{0,40}$",
    re.IGNORECASE,
)
_ADDRESS: Final = re.compile(r"<[^<>]{1,400}@[^<>]{1,400}>[^<>]{0,30}$")
_COLONS: Final = (":", "：")
_INTRODUCTION_LINES_MAX: Final = 3
INTRODUCTION_CHARS_MAX: Final = 400
# Below a quote at the end: a signature, or what a mailing list adds.
_FOOT: Final = re.compile(r"(?:-- ?|[_=]{5,200})$")
_NUMBER: Final = re.compile(r"\d+")
_BLANKS: Final = re.compile(r"\s+")


class EarlierMail(Struct, frozen=True, kw_only=True):
    """A mail as the answer to it repeats it, without the marks of a quote."""

    name: str
    """Who wrote it and when, as the answer says it; may be empty."""
    text: str


class _Cut(Struct, frozen=True, kw_only=True):
    """Where a text goes over into an earlier mail."""

    own: str
    """The lines above, and a foot below."""
    start: int
    """The number of the first line of the earlier mail, or of what introduces it."""
    earlier: EarlierMail


def split_history(subject: str, text: str) -> tuple[str, list[EarlierMail]]:
    """The mail's own text, and the earlier mails below it, the latest first.

    Below the heads of an earlier mail all is of it, and so is a quote with which the text ends.
    Quotes with words of the mail's own below them are context of these, and stay. Where nothing
    stands above, all is the mail's own, and so is what it passes on.
    """
    earlier: list[EarlierMail] = []
    cut = None if _FORWARD.match(subject) else _cut(text)
    if cut is None or not cut.own.strip():
        return text, []
    own = cut.own.strip("\n")
    for depth in range(1, EARLIER_MAX + 1):
        if cut is None:
            break
        mail = cut.earlier
        cut = _cut(mail.text) if depth < EARLIER_MAX else None
        if cut is not None:
            mail = EarlierMail(name=mail.name, text=cut.own)
        if mail.text.strip():
            earlier.append(mail)
    return own, earlier


def _cut(text: str) -> _Cut | None:
    """The first place at which an earlier mail begins; None where none does."""
    lines = text.split("\n")
    cuts = (_at_heads(text, lines), _at_quote(lines), _at_introduction(text, lines))
    first = min((cut for cut in cuts if cut is not None), key=lambda cut: cut.start, default=None)
    if first is None:
        return None
    above = "\n".join(lines[: first.start])
    opening = "\n".join(lines[first.start :]).lstrip().split("\n", 1)[0]
    if _FORWARDED.search(f"{above}\n{opening}", 0, _WINDOW_CHARS):
        return None
    return first


def _at_heads(text: str, lines: list[str]) -> _Cut | None:
    heads, original = (pattern.search(text, 0, _WINDOW_CHARS) for pattern in (_HEADS, _ORIGINAL))
    if original is not None and (heads is None or original.start() < heads.start()):
        start, below = original.start(), text[original.end() :]
        earlier = _named("", below)
    elif heads is not None:
        start, earlier = heads.start(), _by_heads(heads, text[heads.end() :])
    else:
        return None
    number = text.count("\n", 0, start)
    return _Cut(own="\n".join(lines[:number]), start=number, earlier=earlier)


def _by_heads(heads: re.Match[str], below: str) -> EarlierMail:
    named = filter(None, (_words(heads[name]).strip("*_ ") for name in ("who", "when")))
    others = [line.strip() for line in (heads["others"] + heads["rest"]).split("\n")]
    listed = "  \n".join(filter(None, others))
    return EarlierMail(name=", ".join(named), text=f"{listed}\n\n{below.strip()}")


def _named(name: str, text: str) -> EarlierMail:
    """A mail with the name that it was introduced by, or that stands above its text."""
    text = text.strip("\n")
    if heads := _HEADS.match(text):
        return _by_heads(heads, text[heads.end() :])
    if not name:
        lines = text.split("\n")
        for count in range(1, min(_INTRODUCTION_LINES_MAX, len(lines)) + 1):
            if introduces(said := " ".join(lines[:count])):
                return EarlierMail(name=_name(said), text="\n".join(lines[count:]).strip("\n"))
    return EarlierMail(name=name, text=text)


def _at_quote(lines: list[str]) -> _Cut | None:
    """The quote with which a text ends, but for a foot, and the lines that introduce it."""
    last = len(lines) - 1
    while last >= 0 and not lines[last].startswith(">"):
        last -= 1
    foot = lines[last + 1 :]
    opening = next((line for line in foot if line.strip()), None)
    if last < 0 or (opening is not None and not _FOOT.match(opening.rstrip())):
        return None
    first = last
    while first and (lines[first - 1].startswith(">") or not lines[first - 1].strip()):
        first -= 1
    quoted = lines[first : last + 1]
    count, name = _introduction(lines[:first])
    if not count and sum(line.startswith(">") for line in quoted) < _QUOTED_LINES_MIN:
        return None
    plain = "\n".join(line[1:].removeprefix(" ") if line else line for line in quoted)
    start = first - count
    own = "\n".join(lines[:start]).rstrip("\n")
    if opening is not None:
        own = f"{own}\n\n" + "\n".join(foot).strip("\n")
    return _Cut(own=own, start=start, earlier=_named(name, plain))


def _introduction(above: list[str]) -> tuple[int, str]:
    """How many of the last lines say who wrote what follows, and what they say."""
    blanks = 0
    while blanks < min(2, len(above)) and not above[-1 - blanks].strip():
        blanks += 1
    above = above[: len(above) - blanks]
    found = 0, ""
    for count in range(1, min(_INTRODUCTION_LINES_MAX, len(above)) + 1):
        if not above[-count].strip():
            break
        said = " ".join(above[-count:])
        if introduces(said):
            found = count + blanks, _name(said)
            if _has_date(said):
                break
    return found


def _at_introduction(text: str, lines: list[str]) -> _Cut | None:
    """A date and an address with a colon, below which a program has left the quote unmarked."""
    if "@" not in text[:_WINDOW_CHARS]:
        return None
    for number, line in enumerate(lines[: _WINDOW_CHARS >> 6]):
        if not line.rstrip().endswith(_COLONS) or line.startswith(">"):
            continue
        for count in (1, 2):
            said = " ".join(lines[max(0, number + 1 - count) : number + 1]).strip()
            is_short = len(said) <= INTRODUCTION_CHARS_MAX
            if is_short and _has_date(said) and _ADDRESS.search(said[:-1]):
                below = "\n".join(lines[number + 1 :])
                if below.lstrip().startswith(">"):
                    return None
                start = max(0, number + 1 - count)
                earlier = _named(_name(said), below)
                return _Cut(own="\n".join(lines[:start]), start=start, earlier=earlier)
    return None


def introduces(said: str) -> bool:
    """Whether a line says who wrote what is quoted below it."""
    said = said.strip()
    if len(said) > INTRODUCTION_CHARS_MAX or not said.endswith(_COLONS):
        return False
    return _has_date(said) or "@" in said or _WROTE.search(said[:-1]) is not None


def _has_date(said: str) -> bool:
    # A day and a year or a time; one number may be any.
    return len(_NUMBER.findall(_ADDRESS.sub("", said.strip()[:-1]))) > 1


def _name(said: str) -> str:
    return _words(said).rstrip("".join(_COLONS))


def _words(text: str) -> str:
    return _BLANKS.sub(" ", text).strip()

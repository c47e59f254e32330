"""Which lines of a mail are an earlier mail that it answers? They are counted, not repeated."""

import re
from typing import Final

QUOTED_LINES_MIN: Final = 3
_QUOTE: Final = re.compile(r"(?:^>.*\n?){3,}", re.MULTILINE)
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
    rf"^{_MARKS}(?:{_FROM}){_MARKS}[:：][^\n]{{0,400}}\n{{1,2}}"
    rf"(?:[^\n]{{1,400}}\n{{1,2}}){{0,3}}?"
    rf"^{_MARKS}(?:{_SENT}){_MARKS}[:：][^\n]{{0,400}}\n{{1,2}}"
    rf"(?:[^\n]{{1,2000}}\n{{1,2}}){{0,3}}?"
    rf"^{_MARKS}(?:{_SUBJECT}){_MARKS}[:：][^\n]{{0,1000}}$",
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


def is_forward(subject: str, text: str) -> bool:
    """Whether a mail passes another one on, so that the other's text is its own."""
    return bool(_FORWARD.match(subject) or _FORWARDED.search(text, 0, _WINDOW_CHARS))


def folded(text: str) -> str:
    """The text with what it repeats of earlier mails in one line each, which counts the lines.

    Below the heads of an earlier mail all is of it. Three quoted lines or more are folded where
    they stand, since an answer may follow them. Where nothing stands above, it stays.
    """
    found = (pattern.search(text, 0, _WINDOW_CHARS) for pattern in (_ORIGINAL, _HEADS))
    start = min((match.start() for match in found if match), default=0)
    if text[:start].strip():
        earlier = text[start:].strip("\n")
        text = f"{text[:start]}[{_count(earlier)} of an earlier mail]"
    return _QUOTE.sub(lambda quote: f"[{_count(quote[0].rstrip())} quoted]\n", text)


def _count(text: str) -> str:
    lines = text.count("\n") + 1
    return "1 line" if lines == 1 else f"{lines} lines"

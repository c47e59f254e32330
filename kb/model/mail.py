"""Who wrote a mail, to whom, and what other mails call it by?"""

from typing import Final

from msgspec import Struct, structs

_SHOWN_MAX: Final = 10
EARLIER_MARK: Final = "## Earlier mail"
"""What the section of an earlier mail begins with, in the markdown of the mail that repeats it."""


class MailHead(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The head of a mail, or of the mail that an attachment belongs to."""

    sender: str = ""
    """As `Ada Byron <ada@example.org>`; empty if it says none."""
    recipients: tuple[str, ...] = ()
    """Those of To and Cc, in that order."""
    message_id: str = ""
    """Without the angle brackets; empty for an attachment, and for a mail that has none."""
    earlier: tuple[int, ...] = ()
    """Where in the markdown the sections of the earlier mails begin that it repeats."""

    def shortened(self) -> "MailHead":
        """The same with the first ten recipients, and without the places in the markdown."""
        return structs.replace(self, recipients=self.recipients[:_SHOWN_MAX], earlier=())

    def repeats(self, start: int) -> bool:
        """Whether what begins there in the markdown is of an earlier mail."""
        return bool(self.earlier) and start >= self.earlier[0]


def is_person(person: str, wanted: str) -> bool:
    """Whether a sender or recipient is the wanted one: a part of a name or address; any case."""
    return wanted.strip().casefold() in person.casefold()

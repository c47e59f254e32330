"""Who wrote a mail, to whom, and what other mails call it by?"""

from typing import Final

from msgspec import Struct, structs

_SHOWN_MAX: Final = 10


class MailHead(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The head of a mail, or of the mail that an attachment belongs to."""

    sender: str = ""
    """As `Ada Byron <ada@example.org>`; empty if it says none."""
    recipients: tuple[str, ...] = ()
    """Those of To and Cc, in that order."""
    message_id: str = ""
    """Without the angle brackets; empty for an attachment, and for a mail that has none."""

    def shortened(self) -> "MailHead":
        """The same with the first ten recipients alone."""
        return structs.replace(self, recipients=self.recipients[:_SHOWN_MAX])


def is_person(person: str, wanted: str) -> bool:
    """Whether a sender or recipient is the wanted one: a part of a name or address; any case."""
    return wanted.strip().casefold() in person.casefold()

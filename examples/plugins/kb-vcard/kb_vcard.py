"""Reads vCard files: each contact becomes a heading with its fields."""

from kb.errors import EmptySource
from kb.plugins import Canonical, ParserPlugin

PARSER = ParserPlugin(
    mimes=("text/vcard",),
    extensions={"vcf": "text/vcard"},
    read="kb_vcard:read",
    fingerprint="vcard-1",
    is_text=True,
)
_LABELS = {"EMAIL": "Email", "TEL": "Phone", "ORG": "Company", "NOTE": "Note"}


def read(data: bytes, name: str, charset: str | None) -> Canonical:
    """The contacts of a file, in its order."""
    text = data.decode(charset or "utf-8", "replace").replace("\r\n", "\n")
    # A line that begins with a space goes on from the one before.
    lines = text.replace("\n ", "").split("\n")
    parts: list[str] = []
    for line in lines:
        key, _, value = line.partition(":")
        field = key.partition(";")[0].upper()
        if field == "FN":
            parts.append(f"## {value}\n")
        elif field in _LABELS and value:
            parts.append(f"- {_LABELS[field]}: {value}")
    if not parts:
        raise EmptySource("it has no contact", source=name)
    return Canonical(markdown="\n".join(parts) + "\n", title=name, mime="text/vcard")

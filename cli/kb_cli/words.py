"""Arguments that are text, not names of files."""


def text(value: str) -> str:
    """Text that can be stored and printed: bytes that are no UTF-8 become U+FFFD."""
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

"""Split a byte stream into messages: lines, JSON lines, server-sent events. Pure."""

from collections.abc import Iterable, Iterator


def lines(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a body, without their ends, however it was cut into parts.

    An unended last line is dropped: the body broke off there.
    """
    held: list[bytes] = []
    for part in parts:
        first, *more = part.split(b"\n")
        held.append(first)
        for line in more:
            yield b"".join(held).removesuffix(b"\r")
            held = [line]


def json_lines(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Each line that is not blank."""
    return (line for line in lines(parts) if line.strip())


def event_data(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The data of each server-sent event that has any, its lines joined by newlines.

    Lines end in LF or CRLF. Names of events, ids and comments are passed over.
    """
    data: list[bytes] = []
    for line in lines(parts):
        if line.startswith(b"data:"):
            data.append(line.removeprefix(b"data:").removeprefix(b" "))
        elif not line and data:
            yield b"\n".join(data)
            data = []

"""What goes to standard output, and how it looks."""

import sys
from typing import Any

import click
import msgspec


def print_json(value: Any) -> None:
    """One JSON document on a line, indented where a person reads it."""
    raw = msgspec.json.encode(value)
    if sys.stdout.isatty():
        raw = msgspec.json.format(raw, indent=2)
    sys.stdout.buffer.write(raw + b"\n")
    sys.stdout.buffer.flush()


def warn(text: str) -> None:
    """A line on standard error."""
    click.echo(f"kb: {text}", err=True)


def clean(text: str) -> str:
    """Text for a terminal: control characters, which could drive it, made visible."""
    return "".join(
        char if char.isprintable() or char in "\n\t" else f"\\x{ord(char):02x}" for char in text
    )


def link(target: str, shown: str) -> str:
    """`shown`, clickable where standard output is a terminal (OSC 8)."""
    if not sys.stdout.isatty():
        return shown
    return f"\033]8;;{target}\033\\{shown}\033]8;;\033\\"


def size(count: int) -> str:
    """Bytes as people say them."""
    number = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TB"

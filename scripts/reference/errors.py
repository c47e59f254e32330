"""The page of exit codes and errors, from the tree of errors."""

from collections.abc import Iterator

import kb.errors
from reference.markdown import flat, page, part, table


def pages() -> Iterator[tuple[str, str]]:
    """The one page."""
    rows = []
    for name, found in vars(kb.errors).items():
        if isinstance(found, type) and issubclass(found, kb.errors.KbError):
            rows.append([f"`kb.errors.{name}`", str(found.exit_code), flat(found.__doc__)])
    blocks = [
        "## The errors of the library",
        "A command that meets one ends with its exit code.",
    ]
    yield (
        "exit-codes.md",
        page(
            "Exit codes", part("exit-codes"), *blocks, table(("error", "exit code", "when"), rows)
        ),
    )

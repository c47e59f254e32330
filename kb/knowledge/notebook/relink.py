"""Rewrites links between notes; the rest of the text stays as it is. Pure."""

import posixpath
import re
import urllib.parse
from collections.abc import Callable
from typing import Final

from kb.intake.chunker.links import Link, LinkSpan, link_spans

_SUFFIX: Final = ".md"


def target_from(source: str, link: Link) -> str | None:
    """The path in the notebook that a link in `source` names; None if it leads out of it.

    A wiki name is a path from the top.
    """
    is_from_top = link.kind == "wiki" or link.target.startswith("/")
    folder = "" if is_from_top else posixpath.dirname(source)
    path = posixpath.normpath(posixpath.join(folder, link.target.lstrip("/")))
    return None if path in ("", "..") or path.startswith("../") else path


def relinked(
    text: str,
    source: str,
    new_path: Callable[[LinkSpan], str | None],
    *,
    seen_from: str | None = None,
) -> str:
    """The text of the note at `source`, with links to the paths that `wanted` returns.

    None leaves a link as it is. `seen_from` is the note's new path, if it moves.
    """
    final_path = seen_from or source
    for link in sorted(link_spans(text), key=lambda link: -link.start):
        path = new_path(link)
        if path is not None:
            text = text[: link.start] + _written(text, link, path, final_path) + text[link.end :]
    return text


def _written(text: str, placed: LinkSpan, path: str, final_path: str) -> str:
    if placed.link.kind == "wiki":
        return path.removesuffix(_SUFFIX)
    if placed.link.target.startswith("/"):
        target = f"/{path}"
    else:
        target = posixpath.relpath(path, posixpath.dirname(final_path) or ".")
    if not placed.link.target.endswith(_SUFFIX):
        target = target.removesuffix(_SUFFIX)
    # A space is escaped, because brackets would have to enclose the anchor, too.
    unsafe = r"[%#?<>\[\]()]" if text[placed.start - 1] == "<" else r"[%#?<>\[\]()\s]"
    return re.sub(unsafe, lambda sign: urllib.parse.quote(sign[0], safe=""), target)

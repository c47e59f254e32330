"""Links between notes, led elsewhere; all else of a text stays as it is written. Pure."""

import posixpath
import re
import urllib.parse
from collections.abc import Callable
from typing import Final

from kb.intake.chunker.links import Link, LinkSpan, link_spans

_SUFFIX: Final = ".md"


def target_from(source: str, link: Link) -> str | None:
    """The path in the notebook that a link in `source` names; None where it leads out of it.

    A wiki name is a path from the top.
    """
    is_from_top = link.kind == "wiki" or link.target.startswith("/")
    folder = "" if is_from_top else posixpath.dirname(source)
    path = posixpath.normpath(posixpath.join(folder, link.target.lstrip("/")))
    return None if path in ("", "..") or path.startswith("../") else path


def relinked(
    text: str,
    source: str,
    wanted: Callable[[LinkSpan], str | None],
    *,
    seen_from: str | None = None,
) -> str:
    """The text of the note at `source` with links that lead to the paths `wanted` says.

    None leaves a link as it is. The text is to stand at `seen_from`, where that is another path.
    """
    stands = seen_from or source
    for one in sorted(link_spans(text), key=lambda one: -one.start):
        path = wanted(one)
        if path is not None:
            text = text[: one.start] + _written(text, one, path, stands) + text[one.end :]
    return text


def _written(text: str, one: LinkSpan, path: str, stands: str) -> str:
    if one.link.kind == "wiki":
        return path.removesuffix(_SUFFIX)
    if one.link.target.startswith("/"):
        target = f"/{path}"
    else:
        target = posixpath.relpath(path, posixpath.dirname(stands) or ".")
    if not one.link.target.endswith(_SUFFIX):
        target = target.removesuffix(_SUFFIX)
    # A space is escaped, for brackets around it would have to go around the anchor, too.
    unsafe = r"[%#?<>\[\]()]" if text[one.start - 1] == "<" else r"[%#?<>\[\]()\s]"
    return re.sub(unsafe, lambda sign: urllib.parse.quote(sign[0], safe=""), target)

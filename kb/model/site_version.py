"""Which version of a documentation a page is of, as its address says: `/v2/`, `/3.11/`. Pure."""

import re
from typing import Final

# Names that sites give to a moving version, and those of numbers: `v2`, `3.11`, `1.0-beta`.
_NAMED: Final = r"latest|stable|devel|dev|nightly|main|master|next"
_NUMBERED: Final = r"v\d+(?:[._]\d+|[._]x)*|\d+(?:\.\d+)+(?:\.x)?|\d+\.x"
_SUFFIX: Final = r"(?:[.-]?(?:alpha|beta|rc|dev|a|b|lts)[.-]?\d*)?"
# A bare number is one only behind a folder of documentation: not in `/2024/05/` or `/page/2/`.
_BARE: Final = r"(?<=/docs/)\d{1,2}|(?<=/doc/)\d{1,2}|(?<=/documentation/)\d{1,2}"
_FOLDER: Final = rf"/(?P<version>(?:{_NUMBERED}){_SUFFIX}|{_NAMED}|{_BARE})(?=/)"
_REF: Final = (
    r"git\+[a-z]+://[^#]+@(?:refs/(?:heads|tags)/)?"
    rf"(?P<version>(?:{_NUMBERED}){_SUFFIX}|{_NAMED})#"
)
_NAMED_ONLY: Final = frozenset(_NAMED.split("|"))
# A name such as `main` is an everyday word further down.
_NAMED_DEPTH_MAX: Final = 4


def site_version(source: str) -> str | None:
    """The version that an address is of, in lower case; None where it says none.

    The first folder counts that is one; of a repository its ref, if that is one.
    """
    if source.startswith("git+"):
        ref = re.match(_REF, source, re.IGNORECASE)
        return ref["version"].lower() if ref else None
    if not source.startswith(("http://", "https://")):
        return None
    path = "/" + source.partition("?")[0].partition("#")[0].split("/", 3)[-1]
    for match in re.finditer(_FOLDER, path, re.IGNORECASE):
        version = match["version"].lower()
        depth = path.count("/", 0, match.start() + 1)
        if version not in _NAMED_ONLY or depth <= _NAMED_DEPTH_MAX:
            return version
    return None

"""What does one line of markdown begin? Pure tests of single lines; every regex is linear."""

import re
from typing import Final

PAGE_MARK: Final = "\f"
TAB_WIDTH: Final = 4
CODE_INDENT: Final = 4

_ATX = re.compile(r"(#{1,6})(?=[ \t]|$)")
_MARKER = re.compile(r"([-*+]|\d{1,9}[.)])(?=[ \t]|$)")
_TAG = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]{0,15})(?=[\s/>]|$)")
_LONE_TAG = re.compile(r"</?[a-zA-Z][^<>\n]{0,400}>[ \t]*$")
_DELIMITER = re.compile(r"[ \t|:-]+$")
_RAW_END = re.compile(r"</(?:script|pre|style|textarea)>", re.IGNORECASE)

_RAW_TAGS = frozenset({"script", "pre", "style", "textarea"})
_BLOCK_TAG_NAMES = """
address article aside base basefont blockquote body caption center col colgroup dd details dialog
dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header
hr html iframe legend li link main menu menuitem nav noframes ol optgroup option p param search
section summary table tbody td tfoot th thead title tr track ul
"""
_BLOCK_TAGS = frozenset(_BLOCK_TAG_NAMES.split())
# A paragraph line that begins with none of these goes on being the paragraph.
MAY_INTERRUPT: Final = frozenset("#`~>|<-*+_=:0123456789")


def indent_of(line: str, body: str) -> int:
    """Columns before `body`, which is `line` without its leading white space."""
    lead = line[: len(line) - len(body)]
    return len(lead.expandtabs(TAB_WIDTH)) if "\t" in lead else len(lead)


def atx_level(body: str) -> int:
    """1 to 6 for an ATX heading, else 0."""
    match = _ATX.match(body)
    return len(match.group(1)) if match else 0


def fence_of(body: str) -> str:
    """The run that opens a fence (three or more of one of ` and ~), or nothing."""
    mark = body[0]
    if mark not in "`~" or not body.startswith(mark * 3):
        return ""
    length = len(body) - len(body.lstrip(mark))
    if mark == "`" and "`" in body[length:]:
        return ""
    return mark * length


def closes_fence(body: str, opener: str) -> bool:
    """Whether the line ends a fence that `opener` began: the same mark, at least as often."""
    return body.startswith(opener) and not body.rstrip().strip(opener[0])


def is_rule(body: str) -> bool:
    """Whether the line is a thematic break."""
    mark = body[0]
    if mark not in "-*_":
        return False
    dense = body.replace(" ", "").replace("\t", "").rstrip()
    return len(dense) >= 3 and not dense.strip(mark)


def setext_level(body: str) -> int:
    """1 for a line of =, 2 for a line of -, else 0."""
    mark = body[0]
    if mark not in "=-" or body.rstrip().strip(mark):
        return 0
    return 1 if mark == "=" else 2


def marker_of(body: str) -> str:
    """The list marker the line begins with, or nothing."""
    match = _MARKER.match(body)
    return match.group(1) if match else ""


def is_delimiter_row(body: str) -> bool:
    """Whether the line is the row under a table's header."""
    return "-" in body and "|" in body and _DELIMITER.match(body) is not None


def html_end(body: str) -> str | re.Pattern[str] | None:
    """What ends the HTML block this line begins: a string or pattern, "" for a blank line.

    None where the line begins no HTML block that could interrupt a paragraph.
    """
    if body.startswith("<!--"):
        return "-->"
    if body.startswith("<?"):
        return "?>"
    if body.startswith("<![CDATA["):
        return "]]>"
    if body.startswith("<!") and body[2:3].isalpha():
        return ">"
    match = _TAG.match(body)
    if not match:
        return None
    name = match.group(1).lower()
    if name in _RAW_TAGS and not body.startswith("</"):
        return _RAW_END
    return "" if name in _BLOCK_TAGS else None


def is_lone_tag(body: str) -> bool:
    """Whether the line is one complete tag, which begins HTML where no paragraph is open."""
    return _LONE_TAG.match(body) is not None


def interrupts(body: str) -> bool:
    """Whether a line ends the paragraph before it by beginning another block."""
    match body[0]:
        case "#":
            return atx_level(body) > 0
        case "`" | "~":
            return fence_of(body) != ""
        case ">" | "|":
            return True
        case "<":
            return html_end(body) is not None
        case "_":
            return is_rule(body)
        case "-" | "*" | "+":
            return is_rule(body) or (marker_of(body) != "" and len(body.rstrip()) > 1)
        case "1":
            return marker_of(body) in {"1.", "1)"}
        case _:
            return False

"""Which parts does source code have? Its definitions.

They are told by the form of their first lines, unless a grammar has found them
(kb/intake/canonicalize/grammar.py). By its form a definition reaches to the next line that is
indented no further. The comments and decorators right above it belong to it. So each part has the
comment that explains it, and its path names what it is in.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

from kb.intake.chunker.blocks import Block
from kb.model.definition import Definition

_LEVELS_MAX: Final = 6
_TITLE_CHARS_MAX: Final = 160
_LINE_CHARS_MAX: Final = 500
_TAB: Final = 4

_MODIFIERS: Final = (
    r"(?:(?:export|default|declare|pub(?:\([^)\n]{0,40}\))?|public|private|protected|internal|static"
    r"|final|abstract|async|override|virtual|sealed|partial|open|data|inline|unsafe|const|extern"
    r"|local|suspend|readonly|synchronized|native|mutating|operator|implicit|lazy|constexpr|friend"
    r"|typedef|template<[^\n]{0,200}>)\s+)*"
)
_NAMED: Final = (
    r"(?:def|defp|defmacro|defmodule|class|module|namespace|interface|trait|protocol|extension|enum"
    r"|struct|union|record|object|impl|fn|func|fun|function\*?|sub|proc|message|service|rpc|type"
    r"|mod|macro_rules!|macro|abstract type|contract|actor)\s+[\w(\[<$\"'*&:]"
)
_DEFINITION: Final = re.compile(
    rf"{_MODIFIERS}(?:{_NAMED}"
    r"|(?:const|let|var|val)?\s*[\w$.]+\s*(?::[^=\n]{0,200})?=\s*(?:async\s*)?(?:function\b"
    r"|(?:\([^()\n]{0,300}\)|\w+)\s*(?::[^=\n]{0,80})?=>)"
    r"|[\w.]+\s*<-\s*function\b"
    r"|\((?:defn?-?|defun|defmacro|define|deftype|defrecord|defprotocol)\s"
    r"|(?:resource|data|provider|variable|output|module|locals|terraform)\b[^\n]{0,200}\{"
    r"|create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+)?(?:table|view|function|procedure|trigger"
    r"|index|type|schema|materialized\s+view)\b"
    r"|[\w-]+\s*\(\)\s*\{)",
    re.IGNORECASE,
)
# A method or a function of the C family: type, name, arguments, and a body instead of a semicolon.
_METHOD: Final = re.compile(
    rf"{_MODIFIERS}(?:[\w:<>,\[\]?*&.~]+\s+)*[*&]*"
    r"(?:[\w:~$#]+|(?:[\w:<>]{1,100}::)?operator\s*[^\s\w(]{1,3})\s*(?:<[^\n<>]{0,100}>)?"
    r"\([^;\n]{0,400}\)?[^;=\n]{0,120}\{?\s*$"
)
# The same with a body in its own line.
_ONE_LINE: Final = re.compile(
    rf"{_MODIFIERS}(?:[\w:<>,\[\]?*&.~]+\s+)*[*&]*[\w:~$#]+\s*(?:<[^\n<>]{{0,100}}>)?"
    r"\([^;{}\n]{0,300}\)[^;={}()\n]{0,80}\{[^\n]{0,300}\}"
)
_SIGNATURE: Final = re.compile(
    rf"{_MODIFIERS}(?:def|defp|fn|func|fun|function\*?|sub|proc|class|interface|struct)\s+[\w(*]"
)
_STATEMENT: Final = re.compile(
    r"(?:if|else|elif|for|foreach|while|switch|case|return|catch|try|do|when|match|with|await|throw"
    r"|raise|print|assert|new|delete|yield|using|lock|sizeof|typeof|import|from|include|require"
    r"|unless|until|loop|select|go|defer|echo|exit|super|self|this)\b"
)
_CALLED: Final = re.compile(r"([A-Za-z_$][\w$]*)\s*(?:<[^<>\n]{0,100}>)?\s*\(")
_ASSIGNED: Final = re.compile(r"([\w$]+)\s*(?::[^=\n]{0,200})?(?:=|<-)")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][\w$]*")
_KEYWORDS: Final = frozenset(
    re.findall(
        r"\w+",
        "abstract actor async class const constexpr contract create data declare def default define"
        " defmacro defmodule defn defp defprotocol defrecord deftype defun enum export extension"
        " extern fileprivate final fn for friend fun func function impl implicit index inline"
        " interface internal lazy let local macro macro_rules materialized message mod module"
        " mutating namespace native object open operator or override partial private proc procedure"
        " protected protocol pub public readonly record replace rpc schema sealed service static"
        " struct sub suspend synchronized table template trait trigger type union unsafe val var"
        " view virtual void typedef",
    )
)
_ABOVE: Final = re.compile(r"(?:#|//|/\*|\*|@|\[\w|--|;;|'''|\"\"\"|%|\(\*)")
_CLOSING: Final = re.compile(r"(?:[()\[\]{}<>;,]|end\b|else\b|elif\b|except\b|finally\b|catch\b|#)")


def code_blocks(text: str, definitions: Sequence[Definition] = ()) -> list[Block]:
    """The definitions of a text as headings, and what is between them; each line in one block.

    Without `definitions` they are told by their form.
    """
    scanner = _ReadScanner(text, definitions) if definitions else _CodeScanner(text)
    return list(scanner.scan())


def defined_names(text: str) -> frozenset[str]:
    """The names of the definitions whose first lines are in a text of source code."""
    titles = (
        text[block.start : block.end].rsplit("\n", 1)[-1].strip()
        for block in _CodeScanner(text).scan()
        if block.kind == "heading"
    )
    return frozenset(filter(None, map(_defined_name, titles)))


def _defined_name(line: str) -> str:
    """What a definition's first line defines; empty where it is no definition."""
    if line.startswith((".", "@")) or not (_DEFINITION.match(line) or _METHOD.fullmatch(line)):
        return ""
    assigned = _ASSIGNED.search(line.partition("(")[0])
    if assigned and not _KEYWORDS.issuperset({assigned[1].lower()}):
        return assigned[1]
    for names in (_CALLED.findall(line), _IDENTIFIER.findall(line)):
        for name in names:
            if name.lower() not in _KEYWORDS:
                return str(name)
    return ""


class _CodeScanner:
    _knows_ends = False
    """Whether an indent says for sure where a definition ends."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.starts = list(accumulate((len(line) + 1 for line in self.lines), initial=0))
        self.indents = [_indent(line) for line in self.lines]

    def scan(self) -> Iterator[Block]:
        # The indents and titles of the definitions that a line may be in.
        open_: list[tuple[int, str]] = []
        body: list[int] = []
        begun: list[int] = []
        last = -1
        for at, line in enumerate(self.lines):
            if at <= last:
                continue
            stripped = line.strip()
            if not stripped:
                begun.clear()
                yield from self._code(body)
                body = []
                continue
            indent = self.indents[at]
            head = self._head(at, stripped, [row for row, _ in open_])
            if head is not None:
                last = head[-1]
                title = self._title(head)
                above = [row for row in begun if self.indents[row] >= indent]
                first = above[0] if above else at
                yield from self._code([row for row in body if row < first])
                while open_ and open_[-1][0] >= indent:
                    open_.pop()
                open_.append((indent, title))
                yield self._heading(first, last, len(open_), title)
                body = []
                begun.clear()
                continue
            is_apart = not _CLOSING.match(stripped) and not _ABOVE.match(stripped)
            is_over = self._knows_ends or not (body or begun)
            if open_ and is_apart and is_over and indent <= open_[-1][0]:
                # The definition above is over: the line belongs to what that was in, or to none.
                first = begun[0] if begun else at
                yield from self._code([row for row in body if row < first])
                while open_ and open_[-1][0] >= indent:
                    open_.pop()
                title = open_[-1][1] if open_ else ""
                yield self._heading(first, at, max(len(open_), 1), title)
                body = []
                begun.clear()
                continue
            if self._continues(begun, at, stripped):
                begun.append(at)
            else:
                begun.clear()
            body.append(at)
        yield from self._code(body)

    def _head(self, at: int, stripped: str, open_: list[int]) -> range | None:
        """The lines of the signature of a definition that begins at a line; None if none does."""
        return range(at, at + 1) if self._is_definition(at, stripped, open_) else None

    def _is_definition(self, at: int, stripped: str, open_: list[int]) -> bool:
        is_long = len(stripped) > _LINE_CHARS_MAX
        if is_long or _STATEMENT.match(stripped) or stripped.endswith(";"):
            return False
        if stripped.endswith(","):
            # A signature may go on in the next line.
            return bool(_SIGNATURE.match(stripped)) and stripped.count("(") > stripped.count(")")
        if _DEFINITION.match(stripped):
            return True
        depth = sum(row < self.indents[at] for row in open_)
        if depth > 2:
            return False
        if _ONE_LINE.fullmatch(stripped):
            return True
        if not _METHOD.fullmatch(stripped):
            return False
        # The line, or the one below it, opens a body.
        below = next((row.strip() for row in self.lines[at + 1 : at + 3] if row.strip()), "")
        return stripped.endswith("{") or below.startswith("{")

    def _title(self, head: range) -> str:
        """The signature that lines hold, without what opens its body."""
        signature = " ".join(self.lines[row].strip() for row in head)
        return signature.rstrip("{:=( \t")[:_TITLE_CHARS_MAX]

    def _continues(self, begun: list[int], at: int, stripped: str) -> bool:
        """Whether a line may belong to the definition below it: a comment or a decorator."""
        if _ABOVE.match(stripped):
            return True
        return bool(begun) and begun[-1] == at - 1 and self._is_in_comment(begun)

    def _is_in_comment(self, begun: list[int]) -> bool:
        said = "\n".join(self.lines[row] for row in begun)
        return said.count("/*") > said.count("*/") or said.count("(") > said.count(")")

    def _heading(self, first: int, last: int, level: int, title: str) -> Block:
        start, end = self.starts[first], self.starts[last] + len(self.lines[last])
        return Block(
            kind="heading", start=start, end=end, level=min(level, _LEVELS_MAX), title=title
        )

    def _code(self, rows: list[int]) -> Iterator[Block]:
        if rows:
            end = self.starts[rows[-1]] + len(self.lines[rows[-1]])
            yield Block(kind="code", start=self.starts[rows[0]], end=end)


class _ReadScanner(_CodeScanner):
    """Its definitions are given. Depths stand for indents: in how many of them a line is."""

    _knows_ends = True

    def __init__(self, text: str, definitions: Sequence[Definition]) -> None:
        super().__init__(text)
        changes = [0] * (len(self.lines) + 1)
        depths: dict[int, int] = {}
        self._heads: dict[int, range] = {}
        open_ends: list[int] = []
        for place in sorted(definitions, key=lambda place: (place.start, -place.end)):
            while open_ends and open_ends[-1] <= place.name:
                open_ends.pop()
            first = self._row_of(place.start)
            if first not in self._heads:
                signature = max(first, self._row_of(place.signature))
                self._heads[first] = range(signature, self._row_of(place.head_end) + 1)
                depths[first] = len(open_ends)
            changes[first + 1] += 1
            changes[max(first, self._row_of(place.end - 1)) + 1] -= 1
            open_ends.append(place.end)
        self.indents = list(accumulate(changes))[: len(self.lines)]
        for first, depth in depths.items():
            self.indents[first] = depth

    def _row_of(self, place: int) -> int:
        return min(max(bisect_right(self.starts, place) - 1, 0), len(self.lines) - 1)

    def _head(self, at: int, *_: object) -> range | None:
        return self._heads.get(at)


def _indent(line: str) -> int:
    lead = line[: len(line) - len(line.lstrip())]
    return len(lead.expandtabs(_TAB)) if "\t" in lead else len(lead)

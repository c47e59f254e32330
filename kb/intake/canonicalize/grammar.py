"""What does source code define? Its syntax tree says so, where a grammar is installed.

A grammar is C that a generator made, so it runs in the child. What it can make no sense of, such as
a file full of macros, is left to the forms of lines (kb/intake/chunker/definitions.py).
"""

import importlib
import re
import time
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Final

import msgspec

from kb.intake.canonicalize import source_code
from kb.intake.canonicalize.grammars import Grammar, grammars_for
from kb.model.definition import Definition
from kb.model.text import Canonical

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Query

_BYTES_MAX: Final = 1 << 20
_SLICE_BYTES: Final = 1 << 16
# Some texts without sense take minutes, as 50 KB of quotation marks; a sound megabyte takes 0.5 s.
_CPU_S_MAX: Final = 5.0
# A node takes time by its depth.
_DEPTH_MAX: Final = 200
_DEFINITIONS_MAX: Final = 5_000
_ERRORS_SHARE_MAX: Final = 0.1
_NAME_STEPS_MAX: Final = 16
_NAME_BYTES_MAX: Final = 200
# What holds a definition and may begin before it: always, or where it is the first in it.
_WRAPPERS: Final = frozenset(("template_declaration", "export_statement", "decorated_definition"))
_GROUPS: Final = frozenset(
    (
        *("type_declaration", "lexical_declaration", "variable_declaration", "declaration"),
        *("type_definition", "ambient_declaration", "expression_statement"),
    )
)
_NAME_FIELDS: Final = ("name", "declarator", "operator", "key", "left", "property")
# These hold names and have no field for them.
_HOLDERS: Final = frozenset(("reference_declarator", "parenthesized_declarator", "string"))
_TYPED: Final = frozenset(("impl_item", "generic_type", "reference_type", "operator_cast"))
_ATTRIBUTES: Final = frozenset(
    (
        *("decorator", "annotation", "marker_annotation", "attribute_list", "comment"),
        *("attribute_declaration", "line_comment", "block_comment"),
    )
)
_MACRO: Final = re.compile(
    rb"\b(?:class|struct|union|enum)\s+([A-Z][A-Z0-9_]{2,100}\b(?:\([^()\n]{0,100}\))?)"
    rb"(?=\s+[A-Za-z_][\w:]{0,200}\s*(?:final\b|[:{<]))"
)


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """As `source_code.read`, with the definitions that a grammar finds, if one does."""
    canonical = source_code.read(data, name, charset)
    try:
        found = definitions(canonical.markdown, canonical.mime)
    except (ImportError, AttributeError, ValueError):
        # It takes too long, or is of a release that kb does not know, with other nodes.
        return canonical
    return msgspec.structs.replace(canonical, definitions=found)


def definitions(text: str, mime: str) -> tuple[Definition, ...]:
    """The definitions in a text, in the order of their names.

    Empty if there are none, or too many, if no grammar for it is installed, or if its errors are
    over much of the text. Raises ValueError where that takes more than 5 s of processor time.
    """
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > _BYTES_MAX:
        return ()
    best: _Tree | None = None
    for grammar in grammars_for(mime):
        tree = _Tree(text, data, grammar)
        if best is None or tree.errors < best.errors:
            best = tree
        if not best.errors:
            break
    # With many errors, a tree says little of where definitions end.
    if best is None or best.errors > _ERRORS_SHARE_MAX * len(data):
        return ()
    return best.definitions()


@cache
def _compiled(grammar: Grammar) -> "tuple[Language, Query]":
    from tree_sitter import Language, Query

    module = importlib.import_module(grammar.module)
    language = Language(getattr(module, grammar.function)())
    patterns = [
        *(f"({kind}) @def" for kind in grammar.nodes.split()),
        *(f"({kind} body: (_)) @def" for kind in grammar.with_body.split()),
        grammar.patterns,
        "(ERROR) @error",
    ]
    return language, Query(language, "\n".join(patterns))


class _Tree:
    """The syntax tree of one text."""

    def __init__(self, text: str, data: bytes, grammar: Grammar) -> None:
        from tree_sitter import Parser, QueryCursor

        language, query = _compiled(grammar)
        self._rows = data.split(b"\n")
        lengths = (len(row) + 1 for row in text.split("\n"))
        self._starts = list(accumulate(lengths, initial=0))
        data = _without_macros(data) if grammar.has_macros else data
        self._ends_s = time.process_time() + _CPU_S_MAX
        self._tree = Parser(language).parse(
            lambda at, _: data[at : at + _SLICE_BYTES],
            encoding="utf8",
            progress_callback=self._is_late,
        )
        root = self._tree.root_node
        self._nodes = {"error": [node for node in (root, *root.children) if node.is_error]}
        # To search an error of many parts takes time by their square.
        if self.errors <= _ERRORS_SHARE_MAX * len(data):
            cursor = QueryCursor(query)
            cursor.set_max_start_depth(_DEPTH_MAX)
            self._nodes = cursor.captures(root)

    @property
    def errors(self) -> int:
        """How many bytes the grammar could make no sense of."""
        return sum(node.end_byte - node.start_byte for node in self._nodes.get("error", ()))

    def definitions(self) -> tuple[Definition, ...]:
        """All of them; none if they are too many."""
        nodes = self._nodes.get("def", ())
        if len(nodes) > _DEFINITIONS_MAX:
            return ()
        found = {}
        for node in nodes:
            if self._is_late():
                raise ValueError("it takes too long")
            if (place := self._definition(node)) is not None:
                found[place.name] = place
        return tuple(found[name] for name in sorted(found))

    def _is_late(self, *_: object) -> bool:
        return time.process_time() > self._ends_s

    def _definition(self, node: "Node") -> Definition | None:
        name = _name_of(node)
        if name is None or name.end_byte - name.start_byte > _NAME_BYTES_MAX:
            return None
        whole = _whole(node)
        # The name of a C type may come after its body.
        body = node.child_by_field_name("body")
        is_after = body is not None and body.start_byte < name.start_byte
        head = node.start_point[0] if is_after else name.start_point[0]
        return Definition(
            start=self._starts[whole.start_point[0]],
            signature=self._starts[min(_signature_row(whole), head)],
            head_end=self._starts[head + 1] - 1,
            end=self._place(*node.end_point),
            name=self._place(*name.start_point),
            name_end=self._place(*name.end_point),
        )

    def _place(self, row: int, column: int) -> int:
        before = self._rows[row][:column]
        return self._starts[row] + len(before.decode("utf-8", "surrogatepass"))


def _without_macros(data: bytes) -> bytes:
    """With blanks in place of macros between `class` and a name, which no grammar can know."""
    return _MACRO.sub(lambda match: _blanked(match[0], match[1]), data)


def _blanked(whole: bytes, macro: bytes) -> bytes:
    return whole[: -len(macro)] + b" " * len(macro)


def _whole(node: "Node") -> "Node":
    """The definition with its decorators, `export`, `template` or `type`."""
    while (parent := node.parent) is not None:
        is_first = parent.type in _GROUPS and parent.named_child(0) == node
        if not is_first and parent.type not in _WRAPPERS:
            break
        node = parent
    return node


def _signature_row(node: "Node") -> int:
    """The row on which a definition begins, behind decorators, annotations and attributes."""
    for child in node.children:
        inner = child.children if child.type == "modifiers" else [child]
        for part in inner:
            if part.type not in _ATTRIBUTES:
                return part.start_point[0]
    return node.start_point[0]


def _name_of(node: "Node") -> "Node | None":
    """The node of the name that a definition gives; None for what has none."""
    parent = node.parent
    if parent is not None and parent.type == "type_definition":
        # `typedef struct {...} name;`
        node = node if node.child_by_field_name("name") else parent
    for step in range(_NAME_STEPS_MAX):
        fields = ("type",) if node.type in _TYPED else _NAME_FIELDS
        inner = next(filter(None, map(node.child_by_field_name, fields)), None)
        if inner is None and node.type in _HOLDERS and node.named_child_count:
            inner = node.named_child(0)
        if inner is None:
            return node if step else None
        node = inner
    return None

"""Which grammars does kb know, and which of their nodes define something?"""

import importlib.util
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from kb.model.code import code_mime


class Grammar(Struct, frozen=True, kw_only=True):
    """A grammar, and which of its nodes are definitions."""

    module: str
    function: str = "language"
    nodes: str
    """Types of nodes that define something."""
    with_body: str = ""
    """Types of nodes that do so if they have a body."""
    patterns: str = ""
    """Other definitions, as a query that captures each as `def`."""
    has_macros: bool = False
    """Whether a preprocessor would replace words of the text."""

    @property
    def is_installed(self) -> bool:
        """Whether it is there. Imports nothing."""
        return importlib.util.find_spec(self.module) is not None


_JAVASCRIPT: Final = (
    "function_declaration generator_function_declaration class_declaration method_definition"
)
_JAVASCRIPT_VALUES: Final = """
    (variable_declarator name: (identifier) value: [(arrow_function) (function_expression) (class)])
      @def
    (pair key: (_) value: [(arrow_function) (function_expression)]) @def
    (assignment_expression left: (_) right: [(arrow_function) (function_expression) (class)]) @def
"""
_TYPESCRIPT: Final = (
    f"{_JAVASCRIPT} abstract_class_declaration interface_declaration enum_declaration"
    " type_alias_declaration internal_module module"
)
_TYPESCRIPT_VALUES: Final = (
    f"{_JAVASCRIPT_VALUES} (public_field_definition value: [(arrow_function)"
    " (function_expression)]) @def"
)
_C_BODIES: Final = "struct_specifier union_specifier enum_specifier"
_CPP: Final = Grammar(
    module="tree_sitter_cpp",
    nodes="function_definition namespace_definition concept_definition",
    with_body=f"{_C_BODIES} class_specifier",
    has_macros=True,
)

# For PHP, Ruby and the shell the forms of lines find as much: ADR 81.
# By language, as the type of its text names it; of several that with the fewest errors is taken.
GRAMMARS: Final[Mapping[str, tuple[Grammar, ...]]] = {
    "c": (
        Grammar(
            module="tree_sitter_c",
            nodes="function_definition",
            with_body=_C_BODIES,
            has_macros=True,
        ),
        # Headers of C++ have the same endings.
        _CPP,
    ),
    "c++": (_CPP,),
    "csharp": (
        Grammar(
            module="tree_sitter_c_sharp",
            nodes="namespace_declaration class_declaration struct_declaration record_declaration"
            " interface_declaration enum_declaration local_function_statement",
            with_body="method_declaration constructor_declaration destructor_declaration"
            " operator_declaration",
        ),
    ),
    "go": (
        Grammar(
            module="tree_sitter_go",
            nodes="function_declaration method_declaration",
            patterns="(type_spec type: [(struct_type) (interface_type)]) @def",
        ),
    ),
    "java": (
        Grammar(
            module="tree_sitter_java",
            nodes="class_declaration interface_declaration enum_declaration record_declaration"
            " annotation_type_declaration",
            with_body="method_declaration constructor_declaration compact_constructor_declaration",
        ),
    ),
    "javascript": (
        Grammar(
            module="tree_sitter_javascript",
            nodes=_JAVASCRIPT,
            patterns=f"{_JAVASCRIPT_VALUES} (field_definition value: (arrow_function)) @def",
        ),
    ),
    "python": (Grammar(module="tree_sitter_python", nodes="function_definition class_definition"),),
    "rust": (
        Grammar(
            module="tree_sitter_rust",
            nodes="function_item struct_item enum_item union_item trait_item impl_item"
            " macro_definition",
            with_body="mod_item",
        ),
    ),
    "typescript": (
        Grammar(
            module="tree_sitter_typescript",
            function="language_typescript",
            nodes=_TYPESCRIPT,
            patterns=_TYPESCRIPT_VALUES,
        ),
        Grammar(
            module="tree_sitter_typescript",
            function="language_tsx",
            nodes=_TYPESCRIPT,
            patterns=_TYPESCRIPT_VALUES,
        ),
    ),
}


def installed_mimes() -> list[str]:
    """The types of text that a grammar reads here."""
    if importlib.util.find_spec("tree_sitter") is None:
        return []
    return [
        code_mime(language)
        for language, grammars in GRAMMARS.items()
        if any(grammar.is_installed for grammar in grammars)
    ]


def grammars_for(mime: str) -> list[Grammar]:
    """The grammars that are installed for a type of text, the best first."""
    of_language = {code_mime(language): grammars for language, grammars in GRAMMARS.items()}
    return [grammar for grammar in of_language.get(mime, ()) if grammar.is_installed]

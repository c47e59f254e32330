"""Source code: which endings of file names stand for which language."""

from collections.abc import Mapping
from typing import Final

_LANGUAGES: Final = {
    "c": "c h",
    "c++": "cc cpp cxx hh hpp hxx ino",
    "csharp": "cs",
    "clojure": "clj cljs cljc",
    "css": "css scss less",
    "dart": "dart",
    "elixir": "ex exs",
    "erlang": "erl hrl",
    "fortran": "f90 f95 f03",
    "fsharp": "fs fsx",
    "go": "go",
    "graphql": "graphql gql",
    "groovy": "groovy gradle",
    "haskell": "hs",
    "java": "java",
    "javascript": "js jsx mjs cjs",
    "julia": "jl",
    "kotlin": "kt kts",
    "lisp": "lisp el scm",
    "lua": "lua",
    "make": "mk",
    "nim": "nim",
    "nix": "nix",
    "objective-c": "mm",
    "ocaml": "ml mli",
    "perl": "pl pm",
    "php": "php",
    "powershell": "ps1 psm1",
    "protobuf": "proto",
    "python": "py pyi pyw",
    "r": "r",
    "ruby": "rb rake",
    "rust": "rs",
    "scala": "scala sc",
    "shell": "sh bash zsh fish",
    "solidity": "sol",
    "sql": "sql",
    "svelte": "svelte",
    "swift": "swift",
    "terraform": "tf hcl",
    "typescript": "ts tsx mts cts",
    "vue": "vue",
    "zig": "zig",
}
_PREFIX: Final = "text/x-source-"

CODE_MIMES: Final[Mapping[str, str]] = {
    ending: _PREFIX + language
    for language, endings in _LANGUAGES.items()
    for ending in endings.split()
}
"""The type of a file's text, by the ending of its name."""


def code_mime(language: str) -> str:
    """The type of the texts of a language."""
    return _PREFIX + language


def is_code(mime: str) -> bool:
    """Whether a text is source code."""
    return mime.startswith(_PREFIX)

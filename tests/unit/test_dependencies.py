"""What kb asks to have installed: all that it imports, in the versions that are tested."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def imported() -> dict[str, str]:
    """Every module of somebody else's that kb imports anywhere, with one file that does."""
    found: dict[str, str] = {}
    for folder in ("kb", "cli/kb_cli"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for name in names_in(ast.parse(path.read_text("utf-8"))):
                top = name.partition(".")[0]
                if top not in sys.stdlib_module_names and top not in ("kb", "kb_cli"):
                    found.setdefault(top, path.relative_to(ROOT).as_posix())
    return found


def names_in(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def test_what_is_imported_is_declared() -> None:
    """Nothing is there only because something else brings it along."""
    extras = ("code", "hnsw", "postgres", "s3", "serve", "st")
    shipped = [*PROJECT["dependencies"], *(line for extra in extras for line in EXTRAS[extra])]
    declared = {canonicalize_name(Requirement(line).name) for line in shipped}
    # sentence-transformers runs on torch, and chroma-hnswlib holds hnswlib, whether it is there.
    declared |= {"torch", "hnswlib"}
    given_by = packages_distributions()
    missing = {
        name: place
        for name, place in imported().items()
        # Of an extra that is not installed only the name is known.
        if declared.isdisjoint(map(canonicalize_name, given_by.get(name, [name])))
    }
    assert missing == {}


def test_the_pinned_versions_are_allowed() -> None:
    """What is tested together is what may be installed."""
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pinned = dict(re.split("==", line) for line in lines if "==" in line)
    versions = {canonicalize_name(name): version for name, version in pinned.items()}
    asked = [*PROJECT["dependencies"], *(line for lines in EXTRAS.values() for line in lines)]
    for line in asked:
        wanted = Requirement(line)
        assert wanted.specifier.contains(versions[canonicalize_name(wanted.name)]), line

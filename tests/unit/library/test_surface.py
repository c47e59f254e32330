"""What programs may rely on: the names of kb, the methods of a home, and their keywords.

`surface.txt` is the golden text; `surface()` writes it. What it holds stays through 1.x: a line may
be added, and none may change or go.
"""

import ast
import inspect
import re
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from commands import surroundings

import kb
from kb.client.library import keywords
from kb.errors import KbError
from kb.model.search import Filters, WantedKind
from kb.operations.add import AddRequest
from kb.operations.ask import AskRequest
from kb.operations.docs import DocsRequest
from kb.operations.events import EventsRequest
from kb.operations.fetch import FetchRequest
from kb.operations.search import ShownSearch
from kb.operations.similar import SimilarRequest
from kb.operations.sync import SyncRequest

ROOT: Final = Path(__file__).resolve().parents[3]
GOLDEN: Final = Path(__file__).with_name("surface.txt")

# Method -> its request, and the fields that are no keywords.
REQUESTS: Final[dict[str, tuple[type[msgspec.Struct], set[str]]]] = {
    "search": (ShownSearch, {"query"}),
    "ask": (AskRequest, {"question"}),
    "get": (FetchRequest, {"id"}),
    "list": (DocsRequest, set()),
    "similar": (SimilarRequest, {"id"}),
    "add": (AddRequest, set()),
    "sync": (SyncRequest, set()),
    "docs": (Filters, set()),
    "passages": (Filters, set()),
    "events": (EventsRequest, set()),
}


def surface() -> str:
    """Everything public, a line each."""
    lines = [f"kb.__all__ = {sorted(kb.__all__)}", f"kb.open{signature(kb.open)}"]
    for name, member in sorted(vars(kb.Home).items()):
        if isinstance(member, property):
            assert member.fget is not None
            lines.append(f"Home.{name}: {shown(member.fget.__annotations__['return'])}")
        elif inspect.isfunction(member) and (name[0] != "_" or name in ("__enter__", "__exit__")):
            lines.append(f"Home.{name}{signature(member)}")
            lines += [f"    {line}" for line in typed(name)] if name in REQUESTS else []
    return "\n".join(lines) + "\n"


def signature(function: Any) -> str:
    """A signature with annotations as they are written."""
    found = inspect.signature(function)
    parts = [p.replace(annotation=shown(p.annotation)) for p in found.parameters.values()]
    bare = found.replace(parameters=parts, return_annotation=shown(found.return_annotation))
    return str(bare).replace("'", "").replace('"', "")


def shown(annotation: Any) -> Any:
    """An annotation without the names of modules."""
    if annotation is inspect.Parameter.empty or isinstance(annotation, str):
        return annotation
    if typing.get_origin(annotation) is typing.Unpack:
        return f"Unpack[{typing.get_args(annotation)[0].__name__}]"
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return annotation.__name__
    text = re.sub(r"\b(?:typing|collections\.abc)\.", "", str(annotation))
    # There may be more kinds of docs.
    return text.replace(re.sub(r"\btyping\.", "", str(WantedKind)), "Kind")


def typed(method: str) -> Iterator[str]:
    """The keywords of a method with their types."""
    hints = typing.get_type_hints(keywords_of(method))
    for name in sorted(hints):
        yield f"{name}: {shown(hints[name])}"


def keywords_of(method: str) -> Any:
    """The TypedDict of a method."""
    function = getattr(kb.Home, method)
    unpacked = inspect.signature(function).parameters["keywords"].annotation
    return typing.get_args(unpacked)[0]


def test_the_surface_is_the_golden_text() -> None:
    """What programs rely on changes only where somebody writes down that it does."""
    assert surface() == GOLDEN.read_text("utf-8")


@pytest.mark.parametrize("method", REQUESTS)
def test_keywords_are_the_fields_of_the_request(method: str) -> None:
    """A type checker knows the very keywords that the request takes."""
    request, positional = REQUESTS[method]
    assert set(keywords_of(method).__annotations__) == set(request.__struct_fields__) - positional


@pytest.mark.parametrize("method", [name for name in REQUESTS if name not in ("get", "similar")])
def test_a_wrong_keyword_names_those_there_are(method: str, tmp_path: Path) -> None:
    """A TypeError, raised at the call and not at the first piece of an iterator."""
    positional = {"search": ["x"], "ask": ["x"], "add": ["x"]}.get(method, [])
    names = list(keywords_of(method).__annotations__)
    with kb.open(tmp_path / "home") as home:
        with pytest.raises(TypeError) as raised:
            getattr(home, method)(*positional, zzz=["a"])
        start = f"Home.{method}() has no keyword 'zzz'. The keywords are {names[0]}"
        assert str(raised.value).startswith(start)
        assert all(name in str(raised.value) for name in names)
        with pytest.raises(TypeError, match=f"did you mean `{names[0]}`"):
            getattr(home, method)(*positional, **{f"{names[0]}z": 1})
    assert not (tmp_path / "home").exists()


def test_every_name_is_there_and_stable() -> None:
    """`__all__` and the stub name the same, all of it exists, and errors are those of kb.errors."""
    stub = ast.parse((ROOT / "kb/__init__.pyi").read_text("utf-8"))
    names = {
        alias.asname
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert names | {"__version__"} == set(kb.__all__)
    assert all(hasattr(kb, name) for name in kb.__all__)
    assert set(kb.__all__) <= set(dir(kb))
    assert issubclass(kb.errors.HomeClosed, KbError)
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        kb.nothing_of_the_kind  # noqa: B018


def test_every_public_method_says_what_it_raises() -> None:
    """Docstrings are the reference: each has a summary, and its arguments where it has some."""
    for name, member in vars(kb.Home).items():
        if name[0] == "_" or not inspect.isfunction(member):
            continue
        text = inspect.getdoc(member) or ""
        assert text.partition("\n")[0].endswith("."), name
        if len(inspect.signature(member).parameters) > 1:
            assert "Args:" in text, name
            assert "Raises:" in text, name


_COUNT = """
import sys
before = set(sys.modules)
import kb
print(*sorted(set(sys.modules) - before))
"""


def test_import_loads_nothing_else() -> None:
    """`import kb` loads one module, and `kb.errors` one more: neither msgspec nor typing."""
    done = subprocess.run(
        [sys.executable, "-c", _COUNT], capture_output=True, text=True, env=surroundings()
    )
    assert (done.stdout.split(), done.stderr) == (["kb"], "")


def test_opening_loads_no_model_and_no_index(tmp_path: Path) -> None:
    """A program that opens a home waits for neither."""
    script = f"import sys, kb; kb.open({str(tmp_path / 'home')!r}).close(); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=surroundings()
    )
    heavy = {"numpy", "onnxruntime", "tokenizers", "tantivy", "hnswlib", "trafilatura", "click"}
    assert done.stderr == ""
    assert set(done.stdout.split()) & heavy == set()


def test_keywords_module_has_no_other_classes() -> None:
    """Each TypedDict belongs to a method."""
    classes = {
        name
        for name, thing in vars(keywords).items()
        if isinstance(thing, type) and thing.__module__ == keywords.__name__
    }
    assert classes == {keywords_of(method).__name__ for method in REQUESTS}

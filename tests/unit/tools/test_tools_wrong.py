"""What the tools say of calls that are wrong."""

import msgspec
import pytest
from tools_home import BOB, NOBODY, OPERATOR, ToolsHome

from kb.errors import KbError, ModelMissing, StoreBusy, StoreDamaged
from kb.operations.failure import failed_by
from kb.operations.operation import Tool
from kb.operations.table import TOOLS, call

REQUIRED = {
    "kb_search": {"query": "tea"},
    "kb_fetch": {"id": "d1"},
    "kb_similar": {"id": "d1"},
    "kb_pack_read": {"pack": "p", "doc": "d"},
    "kb_pack_search": {"pack": "p", "query": "tea"},
    "kb_pack_neighbors": {"pack": "p", "doc": "d"},
}


@pytest.mark.parametrize("name", ["kb_drop", "", "KB_SEARCH", "x" * 100_000, "\ud800"])
def test_an_unknown_tool(home: ToolsHome, name: str) -> None:
    """It is named, shortened, with those that there are."""
    error = home.error(name)
    assert error["code"] == "unknown_tool"
    assert "kb_search" in error["message"]
    assert len(error["message"]) < 400


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("kb_search", {"query": "x", "since": "May"}, "a date is written as 2026-11-22"),
        ("kb_search", {"query": "x", "cursor": "bad"}, "a cursor is the next_cursor of an answer"),
        ("kb_list_docs", {"cursor": "bad"}, "a cursor is the next_cursor of the page before"),
        ("kb_search", {"query": "x", "mode": "fast"}, "it is one of hybrid, lexical, dense"),
        ("kb_search", {"query": "x", "kinds": ["cat"]}, "it is one of file, stdin, url"),
    ],
)
def test_an_invalid_input_says_what_would_do(
    home: ToolsHome, name: str, arguments: dict[str, object], told: str
) -> None:
    """In words rather than by a pattern, and with the values that there are."""
    message = home.error(name, **arguments)["message"]
    assert told in message
    assert "regex" not in message


@pytest.mark.parametrize(
    ("name", "arguments", "field"),
    [
        ("kb_search", {}, "query"),
        ("kb_search", {"query": 7}, "query"),
        ("kb_search", {"query": "x" * 8193}, "query"),
        ("kb_search", {"query": "x", "limit": 0}, "limit"),
        ("kb_search", {"query": "x", "limit": 101}, "limit"),
        ("kb_search", {"query": "x", "limit": "3"}, "limit"),
        ("kb_search", {"query": "x", "limit": True}, "limit"),
        ("kb_search", {"query": "x", "mode": "sparse"}, "mode"),
        ("kb_search", {"query": "x", "kinds": ["cat"]}, "kinds"),
        ("kb_search", {"query": "x", "tags": ["t"] * 33}, "tags"),
        ("kb_search", {"query": "x", "tags": [""]}, "tags"),
        ("kb_search", {"query": "x", "max_tokens": 0}, "max_tokens"),
        ("kb_fetch", {"id": ""}, "id"),
        ("kb_fetch", {"id": "d" * 4097}, "id"),
        ("kb_fetch", {"id": "c123", "neighbours": 6}, "neighbours"),
        ("kb_fetch", {"id": "c123", "page": 1}, "page"),
        ("kb_fetch", {"id": "c123", "end": 1}, "end"),
        ("kb_fetch", {"id": "d123", "neighbours": 1}, "neighbours"),
        ("kb_fetch", {"id": "d123", "page": 1, "start": 1}, "page"),
        ("kb_fetch", {"id": "d123", "start": 5, "end": 5}, "end"),
        ("kb_fetch", {"id": "d123", "start": -1}, "start"),
        ("kb_list_docs", {"limit": 201}, "limit"),
        ("kb_list_docs", {"cursor": "here"}, "cursor"),
        ("kb_similar", {"limit": 1}, "id"),
        ("kb_search_entities", {"prefix": "x" * 513}, "prefix"),
        ("kb_search_entities", {"limit": 0}, "limit"),
        ("kb_pack_list", {"edge_type": "extends"}, "edge_type"),
        ("kb_pack_list", {"pack": "p", "edge_type": "likes"}, "edge_type"),
        ("kb_pack_list", {"tags": ["x"]}, "pack"),
        ("kb_pack_list", {"skip": -1}, "skip"),
        ("kb_pack_read", {"pack": "p"}, "doc"),
        ("kb_pack_search", {"pack": "", "query": "x"}, "pack"),
    ],
)
def test_an_invalid_input_names_its_field(
    home: ToolsHome, name: str, arguments: dict[str, object], field: str
) -> None:
    """The error says which field is at fault and why."""
    error = home.error(name, **arguments)
    assert (error["code"], error["field"]) == ("invalid_input", field)
    assert field in error["message"]


@pytest.mark.parametrize(
    "tool",
    [tool for tool in TOOLS if "since" in tool.input.__struct_fields__],
    ids=lambda tool: tool.name,
)
def test_dates_are_what_a_command_takes(home: ToolsHome, tool: Tool) -> None:
    """In words as well, counted from the day here; what is none is named."""
    home.give("old.md", "---\ndate: 2023-09-30\n---\n# Old\n\nGreen tea is old.\n")
    home.give("new.md", "---\ndate: 2023-10-02\n---\n# New\n\nGreen tea is new.\n")
    subject = {"query", "question"} & {*tool.input.__struct_fields__}
    arguments = dict.fromkeys(subject, "green tea")
    for dates, others in (
        ({"since": "Last month"}, ("old.md",)),
        ({"until": "2023-09"}, ("new.md",)),
        ({"since": "2 months ago", "until": "last month"}, ()),
    ):
        told = str(home.ask(tool.name, **arguments, **dates))
        assert {"old.md", "new.md"} - {*others} == {n for n in ("old.md", "new.md") if n in told}
    for name in ("since", "until"):
        error = home.error(tool.name, **arguments, **{name: "soon"})
        assert (error["code"], error["field"]) == ("invalid_input", name)
        assert "last week" in error["message"]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
@pytest.mark.parametrize("field", ["scope", "user", "operator", "owner", "visibility", "caller"])
def test_unknown_fields_are_refused(home: ToolsHome, field: str, tool: object) -> None:
    """Nothing that is not in the schema is taken, least of all who asks."""
    name = tool.name  # type: ignore[attr-defined]
    arguments = {**REQUIRED.get(name, {}), field: "local"}
    error = home.error(name, NOBODY, **arguments)
    assert (error["code"], error["field"]) == ("invalid_input", field)


@pytest.mark.parametrize(
    "arguments",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b'{"query": "\xff"}',
        b'{"query": "\\ud800"}',
        b"[" * 100_000,
        b'{"query": "x", "tags": ' + b"[" * 100_000,
        b'{"query": "x", "limit": 1e999}',
        b'{"query": "x"} trailing',
        b'{"query": "' + b"x" * 300_000 + b'"}',
        {"query": "\ud800"},
        {"query": object()},
        {1: "x"},
    ],
)
def test_what_is_no_json_object_is_refused(home: ToolsHome, arguments: object) -> None:
    """Bytes that are no JSON object of the schema are an invalid input, in few words."""
    said = call("kb_search", arguments, home.kit, NOBODY)  # type: ignore[arg-type]
    error = msgspec.json.decode(said)["error"]
    assert error["code"] == "invalid_input"
    assert len(said) < 1000


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_field_that_is_null_is_left_out(home: ToolsHome, tool: Tool) -> None:
    """Also where its type has no null: agents in a strict mode send every field."""
    home.give("a.md", "# A\n\ntea\n")
    given = {**REQUIRED.get(tool.name, {}), **({"question": "tea"} if "ask" in tool.name else {})}
    names = {field.encode_name for field in msgspec.structs.fields(tool.input)}
    assert home.raw(tool.name, **dict.fromkeys(names)) == home.raw(tool.name)
    assert home.raw(tool.name, **{**dict.fromkeys(names), **given}) == home.raw(tool.name, **given)


def test_an_input_may_be_bytes_or_objects(home: ToolsHome) -> None:
    """Both are read by the same rules."""
    home.give("a.md", "# A\n\ntea\n")
    as_bytes = call("kb_search", b'{"query": "tea", "tags": []}', home.kit, OPERATOR)
    assert as_bytes == home.raw("kb_search", query="tea", tags=())


@pytest.mark.parametrize("query", ["", " ", "\0", '"""', "((((", "a" * 8192, "🫖" * 4000, "* OR -"])
def test_any_query_is_answered(home: ToolsHome, query: str) -> None:
    """No text that a query may be is an error."""
    home.give("a.md", "# A\n\ntea\n")
    assert home.ask("kb_search", query=query)["query"] == query


@pytest.mark.parametrize("word", ["\0", "茶" * 512, "#" + "茶" * 511, "https://" + "x" * 500, "#"])
def test_any_name_is_answered(home: ToolsHome, word: str) -> None:
    """Entities and tags of any allowed length and letters are looked up like others."""
    home.give("a.md", "# A\n\ntea #uji\n")
    for scope in (OPERATOR, BOB):
        assert home.ask("kb_search_entities", scope, prefix=word)["more"] is False
        said = home.ask(
            "kb_search", scope, query="tea", require_entities=[word], boost_entities=[word]
        )
        assert said["hits"] == []
        assert home.ask("kb_list_docs", scope, tags=[word])["docs"] == []


@pytest.mark.parametrize("ident", ["d", "c", "x", "дом", "d\0", "d" + "f" * 63, "../d", "D1234"])
def test_an_id_that_is_none(home: ToolsHome, ident: str) -> None:
    """Not found, in the words that were sent."""
    for name in ("kb_fetch", "kb_similar"):
        error = home.error(name, id=ident)
        assert (error["code"], error["field"]) == ("not_found", None)
        assert ident in error["message"]
    assert home.error("kb_search", query="x", doc_ids=[ident])["code"] == "not_found"


def test_an_id_that_is_several(home: ToolsHome) -> None:
    """Too short an id names the candidates."""
    docs = [home.give(f"{n}.md", f"# D{n}\n\ntea\n") for n in range(2)]
    error = home.error("kb_fetch", NOBODY, id="d")
    assert error["code"] == "ambiguous_id"
    assert all(doc.doc_id in error["message"] for doc in docs)


def test_a_damaged_file_is_an_error_and_names_itself_to_operators_only(home: ToolsHome) -> None:
    """No traceback, no text that may be wrong; the place is for the person at the machine."""
    doc = home.give("a.md", "# A\n\ntea\n")
    path = home.file(doc.md_path)
    path.unlink()
    path.write_text("other")
    error = home.error("kb_fetch", OPERATOR, id=doc.doc_id)
    assert error["code"] == "damaged"
    assert doc.md_path in error["message"]
    hidden = home.error("kb_fetch", NOBODY, id=doc.doc_id)
    assert hidden["code"] == "damaged"
    assert doc.md_path not in hidden["message"]
    passage = home.passages(doc)[0]
    assert home.ask("kb_fetch", id=passage.chunk_id)["text"] == passage.text


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StoreBusy(place="secret"), "busy"),
        (StoreDamaged("secret", place="secret"), "damaged"),
        (ModelMissing("secret"), "unavailable"),
        (KbError("secret"), "unavailable"),
    ],
)
def test_causes_are_for_operators(error: KbError, code: str) -> None:
    """Others hear that it did not work, and no more."""
    assert failed_by(error, BOB).error.code == code
    assert "secret" not in failed_by(error, BOB).error.message
    assert "secret" in failed_by(error, OPERATOR).error.message

"""What the tools cost an agent before its first call, and that they are whole all the same."""

import json
from collections.abc import Sequence
from typing import Any

import jsonschema
import msgspec
import pytest
from tokenizers import Tokenizer
from tools_home import NOBODY, OPERATOR, ToolsHome

from kb.intake.embed.onnx import builtin_model_dir
from kb.operations.operation import Tool
from kb.operations.table import HELP, LEARN, TOOLS, answer, tools_of
from kb.serve.mcp_tools import answer_text, brief_schema, described

TOKENS_MAX = 3_600
TOKENS_MAX_WITH_PACKS_AND_TOPICS = 5_350
PACK_TOOLS = {tool.name for tool in TOOLS if tool.name.startswith("kb_pack_")}
EMPTY_HOME = {tool.name for tool in TOOLS} - PACK_TOOLS - {"kb_search_entities"}


def tokens(tools: Sequence[Tool]) -> int:
    """What a model reads of tools, by the tokenizer of the built-in model.

    It counts each mark of punctuation, so more than those of large models do.
    """
    tokenizer = Tokenizer.from_file(str(builtin_model_dir() / "tokenizer.json"))
    tokenizer.no_truncation()
    rows = [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
        for tool in described(tools)
    ]
    assert rows
    return len(tokenizer.encode(json.dumps(rows, separators=(",", ":")), add_special_tokens=False))


def test_the_tools_cost_few_tokens() -> None:
    """Without packs and topics, and with both."""
    plain = [tool for tool in TOOLS if tool.name not in PACK_TOOLS]
    assert tokens([*plain, HELP]) <= TOKENS_MAX
    assert tokens([*TOOLS, HELP, LEARN]) <= TOKENS_MAX_WITH_PACKS_AND_TOPICS


def test_a_tool_without_anything_to_say_is_not_listed(home: ToolsHome) -> None:
    """Those of entities where none is mentioned, for whoever sees none."""

    def names(scope: Any) -> set[str]:
        return {tool.name for tool in tools_of(home.kit, scope)}

    assert names(OPERATOR) == names(NOBODY) == EMPTY_HOME
    home.give("a.md", "# A\n\ntea @ann\n", visibility="private", owner="ann")
    assert names(OPERATOR) == {*EMPTY_HOME, "kb_search_entities"}
    assert names(NOBODY) == EMPTY_HOME
    # Whoever calls it all the same is answered.
    assert home.ask("kb_pack_list", NOBODY)["packs"] == []


def test_filters_of_packs_are_told_where_there_are_packs() -> None:
    """In the schema of each tool that has them."""
    for tools, told in (((TOOLS[0],), False), (TOOLS, True)):
        fields = described(tools)[0].input_schema["properties"].keys()
        assert ({"packs", "with_neighbors"} <= fields) is told
        assert ({"packs", "with_neighbors"} & fields != set()) is told


@pytest.mark.parametrize("tool", [*TOOLS, HELP, LEARN], ids=lambda tool: tool.name)
def test_a_brief_schema_lets_through_what_the_whole_one_does(tool: Tool) -> None:
    """It is a schema, and knows each field by its name and its type."""
    whole = json.loads(tool.input_schema)
    brief = brief_schema(whole)
    jsonschema.Draft202012Validator.check_schema(brief)
    assert brief["properties"].keys() == whole["properties"].keys()
    assert brief.get("required") == whole.get("required")
    for name, field in brief["properties"].items():
        assert {"type", "enum", "$ref", "anyOf"} & field.keys(), name
        assert name == "edge_type" or field["description"]


def test_an_answer_leaves_out_what_says_nothing(home: ToolsHome) -> None:
    """No null, nothing false or empty within it, and all that the whole answer says besides."""
    home.give("a.md", "# Tea\n\nGreen tea.\n", visibility="private", owner="ann")
    result = answer("kb_search", {"query": "green tea"}, home.kit, OPERATOR)
    text = answer_text(result)
    whole, brief = json.loads(msgspec.json.encode(result)), json.loads(text)
    (hit,) = brief["hits"]
    assert hit.items() <= {**whole["hits"][0], "heading": hit["heading"]}.items()
    assert {"null", "false"} & set(text.replace(",", ":").replace("}", ":").split(":")) == set()
    assert hit["text"] == "# Tea\n\nGreen tea."
    nothing = json.loads(answer_text(answer("kb_list_docs", {}, home.kit, NOBODY)))
    assert nothing["docs"] == []
    assert nothing["total"] == 0


def test_an_unknown_field_names_the_one_that_was_meant(home: ToolsHome) -> None:
    """Or else those that the tool is described with, and no other."""
    error = home.error("kb_search", query="tea", tag=["x"])
    assert error["field"] == "tag"
    assert error["message"].endswith("unknown field `tag`; did you mean `tags`?")
    (described_search,) = described([tool for tool in TOOLS if tool.name == "kb_search"])
    told = home.error("kb_search", query="tea", zzz=1)["message"].partition("The fields are ")[2]
    assert {*told.split(", ")} == {*described_search.input_schema["properties"]}
    assert "limit" in told
    assert "The fields are" in home.error("kb_list_docs", sort="date")["message"]
    assert "The fields are id, " in home.error("kb_fetch", id="d0", zzz=1)["message"]


def test_a_text_is_fetched_by_its_source(home: ToolsHome) -> None:
    """By all of what a hit shows, or by the end of its path; a miss names the nearest."""
    doc = home.give("boiler.md", "# Boiler\n\nThe quote.\n")
    for place in (doc.source, "boiler.md", "boiler"):
        assert home.ask("kb_fetch", id=place)["doc_id"] == doc.doc_id
    assert f"did you mean {doc.source}?" in home.error("kb_fetch", id="boyler.md")["message"]
    hidden = home.give("hidden.md", "# Hidden\n", visibility="private", owner="ann")
    missing = home.error("kb_fetch", NOBODY, id="hiden.md")["message"]
    assert missing == "nothing here has the id hiden.md"
    assert home.error("kb_fetch", NOBODY, id=hidden.source)["code"] == "not_found"

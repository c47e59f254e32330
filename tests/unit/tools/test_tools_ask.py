"""What `kb_ask` answers, and to whom."""

from collections.abc import Iterator

import msgspec
from tools_home import BOB, NOBODY, OPERATOR, ToolsHome, long_text

from kb.errors import ModelUnavailable
from kb.home.spaces.spaces import Spaces
from kb.knowledge.answers import NOTHING_FOUND, AnswerResources
from kb.knowledge.llm import Provider
from kb.model.doc import Scope
from kb.operations.table import call


class Heard:
    """A model that keeps what it was sent, and says one sentence, or fails."""

    name = "fake:heard"

    def __init__(self, *, fails: bool = False) -> None:
        self.sent: list[str] = []
        self.fails = fails

    def complete(self, system: str, user: str) -> str:
        self.sent.append(user)
        if self.fails:
            raise ModelUnavailable("connection refused", place="fake (http://192.0.2.1)")
        return "Green tea comes from Uji [1]. It is old."

    def stream(self, system: str, user: str) -> Iterator[str]:
        yield self.complete(system, user)


def asked(home: ToolsHome, model: Provider, scope: Scope = OPERATOR) -> dict[str, object]:
    resources = AnswerResources(provider=lambda: model)
    kit = Spaces([msgspec.structs.replace(home.kit.homes[0], answer_resources=lambda: resources)])
    said: dict[str, object] = msgspec.json.decode(
        call("kb_ask", {"question": "where is green tea from?"}, kit, scope)
    )
    return said


def test_without_a_model_the_answer_is_extracts(home: ToolsHome) -> None:
    """Quoted sentences with their sources, the filters as in a search, the text where wanted."""
    doc = home.give("a.md", "# Tea\n\nGreen tea is from Uji. It is old.\n", tags=("drink",))
    home.give("b.md", "# More tea\n\nGreen tea is from Java.\n")
    asked = {"question": "where is green tea from?", "tags": ["drink"], "doc_ids": [doc.doc_id[:8]]}
    said = home.ask("kb_ask", **asked)
    assert (said["kind"], said["found"]) == ("extracts", True)
    assert said["answer"] == "Green tea is from Uji. [1]"
    assert said["sentences"] == [
        {"text": "Green tea is from Uji.", "citations": [1], "supported": True}
    ]
    (source,) = said["sources"]
    assert (source["n"], source["doc_id"], source["text"]) == (1, doc.doc_id, None)
    (source,) = home.ask("kb_ask", **asked, with_text=True)["sources"]
    assert "Uji" in source["text"]


def test_its_passages_are_held_to_the_budget(home: ToolsHome) -> None:
    """As those of a search, and it says what was left out."""
    for n in range(4):
        home.give(f"{n}.md", long_text(4, title=f"Doc {n}"))
    said = home.ask("kb_ask", question="kettle boils water", max_tokens=70)
    assert len(said["sources"]) < 4
    assert "left out" in said["warnings"][-1]


def test_a_model_answers_and_is_checked(home: ToolsHome) -> None:
    """It is sent the passages; what it adds of its own is marked."""
    home.give("a.md", "# Tea\n\nGreen tea comes from Uji.\n")
    model = Heard()
    said = asked(home, model)
    assert said["answer"] == "Green tea comes from Uji [1]. It is old. [unsupported]"
    assert len(model.sent) == 1
    assert "Green tea comes from Uji." in model.sent[0]


def test_a_model_reads_what_the_scope_sees(home: ToolsHome) -> None:
    """What is private to others is never sent for somebody."""
    home.give("a.md", "# Tea\n\nGreen tea comes from Uji.\n")
    home.give("b.md", "# Hidden\n\nGreen tea is a codeword.\n", visibility="private", owner="bob")
    for scope, sees in ((NOBODY, False), (BOB, True)):
        model = Heard()
        asked(home, model, scope)
        assert ("codeword" in model.sent[0]) is sees


def test_others_are_not_told_where_the_model_is(home: ToolsHome) -> None:
    """It failed, and the answer is extracts; its address is for the operator."""
    home.give("a.md", "# Tea\n\nGreen tea comes from Uji.\n")
    for scope, told in ((OPERATOR, True), (NOBODY, False)):
        said = asked(home, Heard(fails=True), scope)
        assert said["kind"] == "extracts"
        assert ("192.0.2.1" in str(said["warnings"])) is told


def test_nothing_here_is_an_answer(home: ToolsHome) -> None:
    """An empty home is no error."""
    said = home.ask("kb_ask", question="anything?")
    assert (said["answer"], said["found"], said["sources"]) == (NOTHING_FOUND, False, [])
    assert said["warnings"] == ["there are no docs to search"]

"""The examples of the guides for programs, run as they stand: what they print is what they show."""

import contextlib
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any, Final

import llm_server
import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
_BLOCK: Final = re.compile(r"(?ms)^```(python|text)\n(.*?)^```$")
ADA: Final = "/home/ada"


def blocks(page: str) -> list[tuple[str, str | None]]:
    """The examples of a page, each with what it shows as printed."""
    found = _BLOCK.findall((ROOT / f"docs/how-to/{page}.md").read_text("utf-8"))
    examples: list[tuple[str, str | None]] = []
    for kind, text in found:
        if kind == "python":
            examples.append((text, None))
        else:
            code, shown = examples.pop()
            assert shown is None, "two outputs of one example"
            examples.append((code, text))
    return examples


@pytest.fixture
def ada(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a user who has the examples and nothing else."""
    folder = tmp_path / "ada"
    shutil.copytree(ROOT / "examples", folder / "examples")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    for name in ("KB_HOME", "KB_SERVER"):
        monkeypatch.delenv(name, raising=False)
    # Where tesseract is installed pictures would wait for it.
    monkeypatch.setenv("KB_CFG", "ingest.ocr=off")
    monkeypatch.chdir(folder)
    return folder


def ran(page: str, folder: Path) -> list[tuple[str, str]]:
    """What each example of a page prints, and what the page shows; one after another."""
    names: dict[str, Any] = {"__name__": "example"}
    outputs: list[tuple[str, str]] = []
    for number, (code, shown) in enumerate(blocks(page)):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"{page}.md, example {number}", "exec"), names)
        if shown is not None:
            outputs.append((printed.getvalue().replace(str(folder), ADA), shown))
    return outputs


def test_the_guide_to_python_shows_what_its_examples_print(ada: Path) -> None:
    """Every example runs, and what stands under it is its output."""
    outputs = ran("python", ada)
    assert len(outputs) >= 9
    for printed, shown in outputs:
        assert printed == shown
    assert not list((ada / "data").rglob("data.mdb"))


def test_the_guide_to_frameworks_runs_without_one(
    ada: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The retriever finds, and the loop calls the tools that a model asks for, also wrongly."""
    with llm_server.llm_serving("openai") as server:
        monkeypatch.setenv("LLM_URL", server.base_url)
        monkeypatch.setenv("LLM_MODEL", llm_server.MODEL)
        server.script = [
            asks(server, "search", {"query": "keep a dog", "tag": "house"}),
            asks(server, "search", {"query": "is a pet allowed"}),
            asks(server, "read", {"id": "dffffffff"}),
            server.says("A small dog, if the landlord agrees: lease.html."),
        ]
        outputs = ran("agent-framework", ada)
        questions = server.asked()
    for printed, shown in outputs:
        assert printed == shown
    assert len(outputs) == 1
    results = [message for message in questions[-1]["messages"] if message["role"] == "tool"]
    wrong, passages, missing = (json.loads(message["content"]) for message in results)
    assert "unexpected keyword argument 'tag'" in wrong["error"]
    assert "A cat or a small dog may live in the flat" in passages[0]["text"]
    assert missing == {"error": "nothing here has the id dffffffff; `kb ls` lists the docs"}
    assert [len(question["messages"]) for question in questions] == [2, 4, 6, 8]
    assert [tool["function"]["name"] for tool in questions[0]["tools"]] == ["search", "read"]


def asks(server: llm_server.LlmServer, name: str, arguments: dict[str, str]) -> Any:
    """A model's answer that calls one tool."""
    call = {"id": f"call-{name}", "type": "function"}
    call |= {"function": {"name": name, "arguments": json.dumps(arguments)}}  # type: ignore[dict-item]
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return llm_server.answered({"choices": [{"message": message, "finish_reason": "tool_calls"}]})

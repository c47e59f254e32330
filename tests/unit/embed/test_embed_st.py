"""How a sentence-transformers model is loaded; the library itself is a stand-in here."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kb.errors import ModelMissing
from kb.intake.embed.st import SentenceTransformersEmbedder


class _Asked(Exception):
    """What the library was called with; nothing is loaded."""


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str, **options: Any) -> None:
        raise _Asked((name, options))

    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = load  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)


def asked(name: str) -> tuple[str, dict[str, Any]]:
    with pytest.raises(ModelMissing) as raised:
        SentenceTransformersEmbedder(name)
    cause = raised.value.__cause__
    assert isinstance(cause, _Asked), raised.value
    return cause.args[0]


def test_code_that_comes_with_a_model_is_not_run() -> None:
    """The library is told so, whatever its own default is."""
    assert asked("org/model") == ("org/model", {"device": None, "trust_remote_code": False})


def test_a_folder_here_is_not_taken_for_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clone cannot put a model of its own under the name of one that the user has set."""
    (tmp_path / "org/model").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelMissing, match=r"give \./org/model") as raised:
        SentenceTransformersEmbedder("org/model")
    assert raised.value.__cause__ is None
    assert asked("./org/model")[0] == "./org/model"
    assert asked(str(tmp_path / "org/model"))[0] == str(tmp_path / "org/model")

"""The wheel that users install."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = """
import kb.intake.embed.onnx as onnx
folder = onnx.builtin_model_dir()
vector = onnx.OnnxEmbedder(folder).embed_query("a brown fox")
print(folder, vector.shape[0])
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built as pip builds it."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", folder, ROOT]
    built = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert built.returncode == 0, built.stderr
    (found,) = folder.glob("kb_search-*.whl")
    return found


def test_the_wheel_carries_the_model_and_nothing_that_is_not_kb(wheel: Path) -> None:
    """The model, kb's own entries and the page; top-level names are kb, kb_cli and the metadata."""
    names = zipfile.ZipFile(wheel).namelist()
    model = {Path(name).name for name in names if name.startswith("kb/intake/embed/models/")}
    entries = {Path(name).name for name in names if name.startswith("kb/knowledge/guide/core/")}
    tops = {name.split("/")[0] for name in names}
    assert entries == {path.name for path in (ROOT / "kb/knowledge/guide/core").iterdir()}
    page = {Path(name).name for name in names if name.startswith("kb/serve/page/")}
    assert page == {path.name for path in (ROOT / "kb/serve/page").iterdir()}
    assert model == {"model.onnx", "tokenizer.json", "model.json"}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"kb", "kb_cli"}


def test_what_the_wheel_installs_embeds_without_the_checkout(wheel: Path, tmp_path: Path) -> None:
    """Unpacked elsewhere, kb finds its own model and embeds with it."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, env=env, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    folder, dim = done.stdout.split()
    assert Path(folder).is_relative_to(tmp_path / "site")
    assert dim == "384"

"""The wheel that users install."""

import email
import os
import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
SIZE_MB_MAX = 450
"""A real environment has 400 MB, on Linux with Python 3.11; a fifth of it is numpy."""
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
    if "No matching distribution found for hatchling" in built.stderr:
        pytest.skip("no package index can be reached, from which the build needs hatchling")
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
    assert {"kb/py.typed", "kb/__init__.pyi"} <= set(names)
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


def test_the_wheel_installs_the_command_into_an_empty_environment(
    wheel: Path, tmp_path: Path
) -> None:
    """`kb` is there, its modules are the installed ones, and there is no module `cli`.

    What kb needs is borrowed from the environment of the tests, so that nothing is downloaded.
    """
    place = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True, timeout=120)
    python = place / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index"]
    subprocess.run([*pip, "--no-deps", wheel], check=True, capture_output=True, timeout=120)
    site = place / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    (site / "site-packages" / "borrowed.pth").write_text(
        "\n".join(folder for folder in sys.path if folder.endswith("site-packages"))
    )
    code = (
        "import importlib.metadata as m, importlib.util as u, kb, kb_cli;"
        "print(m.version('kb-search'), u.find_spec('cli'), kb.__file__, kb_cli.__file__)"
    )
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    version, found = (
        subprocess.run(argv, capture_output=True, text=True, env=env, cwd=tmp_path, timeout=120)
        for argv in ([place / "bin" / "kb", "--version"], [python, "-c", code])
    )
    assert (version.returncode, found.returncode) == (0, 0), version.stderr + found.stderr
    number, no_module, *files = found.stdout.split()
    assert version.stdout == f"kb {number}\n"
    assert no_module == "None"
    assert all(Path(file).is_relative_to(site) for file in files)


def test_what_is_installed_with_it_is_small_and_without_torch(wheel: Path) -> None:
    """The wheel and all that it requires without an extra, counted as it lies on this disk."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(archive.read(name))
        wheel_bytes = sum(info.file_size for info in archive.infolist())
    assert metadata["Name"] == "kb-search"
    needed = closure(metadata.get_all("Requires-Dist", []))
    heavy = {"torch", "transformers", "sentence-transformers", "scipy", "scikit-learn"}
    assert needed.keys() & heavy == set()
    megabytes = (wheel_bytes + sum(map(size_bytes, needed.values()))) / 1e6
    assert 100 < megabytes < SIZE_MB_MAX


def closure(lines: list[str]) -> dict[str, Distribution]:
    """The installed distributions that requirements lead to here, by name."""
    needed: dict[str, Distribution] = {}
    waiting = [(Requirement(line), "") for line in lines]
    while waiting:
        requirement, extra = waiting.pop()
        name = canonicalize_name(requirement.name)
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        if name in needed and not requirement.extras:
            continue
        needed[name] = distribution(requirement.name)
        for inner in map(Requirement, needed[name].requires or []):
            waiting += [(inner, extra) for extra in ("", *requirement.extras)]
    return needed


def size_bytes(installed: Distribution) -> int:
    """What its files take; the bytecode is counted too, where it is there."""
    paths = (Path(str(installed.locate_file(file))) for file in installed.files or [])
    return sum(path.stat().st_size for path in paths if path.is_file())

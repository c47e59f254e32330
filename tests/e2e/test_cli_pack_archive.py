"""Packs that are handed on, as a person does it."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from commands import KB, Home, run, surroundings

from kb.intake.embed.onnx import builtin_model_dir

NOTES = {
    "quince.md": "---\nkind: fruit\n---\n# Quince\n\nA quince is hard. See [[medlar]].\n",
    "medlar.md": "# Medlar\n\nA medlar is eaten soft. See [[damson]].\n",
    "damson.md": "# Damson\n\nA damson is a small plum.\n",
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def other(tmp_path: Path) -> Home:
    return Home(tmp_path / "other")


def hits(home: Home, *args: object) -> list[Any]:
    ran = home.run("search", *args, "--json")
    assert ran.code == 0, ran
    found: list[Any] = ran.json["hits"]
    return found


def test_an_archive_from_export_to_search(home: Home, other: Home, tmp_path: Path) -> None:
    """Taken in elsewhere without a job; a newer one takes its place; compaction takes the old."""
    source = tmp_path / "src"
    source.mkdir()
    for name, text in NOTES.items():
        (source / name).write_text(text)
    home.run("add", "-r", source, "--tags", "fruit", "--visibility", "public")
    (tmp_path / "own.md").write_text("# Own\n\nFor me alone.\n")
    home.run("add", tmp_path / "own.md", "--tags", "fruit")
    path = tmp_path / "fruit.tar"
    done = home.run("pack", "export", "--tag", "fruit", "--to", path, "--title", "F", "--json").json
    assert (done["docs"], done["private_left_out"], done["signed_by"]) == (3, 1, None)
    assert home.run("pack", "export", "--tag", "fruit", "--to", path).code == 2
    data = path.read_bytes()
    home.run("pack", "export", "--tag", "fruit", "--to", path, "--title", "F", "--force")
    assert path.read_bytes() == data

    log = tmp_path / "log"
    ran = other.run("pack", "add", path, "--json", env=surroundings(KB_FAILPOINTS_LOG=str(log)))
    assert (ran.json["sync"]["added"], ran.json["title"]) == (3, "F")
    assert ran.json["warnings"] == ["the archive is not signed"]
    hit = log.read_text().split()
    assert "worker.after_embed" not in hit
    assert "worker.after_chunk" not in hit
    assert other.run("stats", "--json").json["vectors"] == 3
    (first, *_) = hits(other, "a quince is hard", "--mode", "dense")
    assert (first["title"], first["freshness"]) == ("Quince", "fresh")
    assert other.run("pack", "read", "fruit", "damson").out.startswith("# Damson")
    assert other.run("check").code == 0

    (source / "damson.md").unlink()
    (source / "quince.md").write_text("# Quince\n\nNow it is stewed.\n")
    home.run("sync-all", "--interval-min", 0, "--accept-deletions")
    to = ("--to", path, "--version", 2, "--force")
    assert home.run("pack", "export", "--tag", "fruit", *to).code == 0
    line = other.run("pack", "add", path, "--json").json["sync"]
    assert [line[name] for name in ("updated", "unchanged", "removed")] == [1, 1, 1]
    assert [hit["title"] for hit in hits(other, "stewed", "--mode", "lexical")] == ["Quince"]
    assert other.run("pack", "ls", "--json").json["packs"][0]["version"] == "2"
    assert len(list((other.root / "packs").iterdir())) == 3
    assert other.run("compact", "--json").json["packs_removed"] == 1
    assert other.run("pack", "read", "fruit", "quince").out.endswith("stewed.\n")
    assert other.run("pack", "rm", "fruit", "--json").json["docs"] == 2
    assert other.run("compact", "--json").json["packs_removed"] == 2
    assert list((other.root / "packs").iterdir()) == []
    assert other.run("check").code == 0


def test_a_model_that_fails_is_not_asked(home: Home, tmp_path: Path) -> None:
    """With a graph that cannot be loaded the vectors of an archive come in all the same."""
    (tmp_path / "q.md").write_text(NOTES["quince.md"])
    broken = tmp_path / "broken"
    shutil.copytree(builtin_model_dir(), broken)
    (broken / "model.onnx").write_bytes(b"no graph")
    path = tmp_path / "q.tar"

    def onnx(root: Path, *args: object) -> Any:
        words = [KB, "--home", root, *args]
        return run([*map(str, words)], env=surroundings(XDG_CONFIG_HOME=str(tmp_path / "x")))

    assert onnx(home.root, "add", tmp_path / "q.md", "--visibility", "public").code == 0
    assert onnx(home.root, "pack", "export", "--query", "quince", "--to", path).code == 0
    use = ("--cfg", f"embed.model={broken}")
    ran = onnx(tmp_path / "o", *use, "pack", "add", path, "--json")
    assert (ran.code, ran.json["sync"]["added"]) == (0, 1)
    stats = onnx(tmp_path / "o", *use, "stats", "--json").json
    assert (stats["vectors"], stats["jobs"]) == (1, {"ready": 0, "running": 0, "failed": 0})

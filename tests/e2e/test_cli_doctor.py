"""`kb doctor`: each trouble around the store is named with what mends it."""

import os
from pathlib import Path

import pytest
from commands import Home, Ran


@pytest.fixture
def home(tmp_path: Path) -> Home:
    note = tmp_path / "n" / "a.md"
    note.parent.mkdir()
    note.write_text("A note.")
    home = Home(tmp_path / "home")
    home.run("add", "-r", note.parent)
    return home


def findings(ran: Ran) -> dict[str, str]:
    assert ran.code == 3
    assert not ran.json["well"]
    return {one["place"]: one["mend"] for one in ran.json["findings"]}


def test_all_is_well(home: Home, tmp_path: Path) -> None:
    """A sound home, or none yet, is exit 0; nothing is made."""
    assert home.run("doctor").out.endswith(" (kb-search 0.1.0)\nall is well\n")
    health = home.run("doctor", "--json").json
    assert (health["well"], health["findings"]) == (True, [])
    assert Home(tmp_path / "none").run("doctor").code == 0
    assert not (tmp_path / "none").exists()


def test_others_may_enter(home: Home) -> None:
    """The home's permissions, with the command that mends them."""
    home.root.chmod(0o755)
    ran = home.run("doctor")
    assert ran.code == 3
    assert "mode 0755" in ran.out
    assert f"chmod 700 {home.root}" in ran.out
    home.root.chmod(0o700)
    assert home.run("doctor").code == 0


def test_work_that_waits_and_a_source_in_trouble(home: Home, tmp_path: Path) -> None:
    """Jobs that nobody has done, and a folder that is not there."""
    (tmp_path / "n").rename(tmp_path / "elsewhere")
    home.run("sync-all", "--interval-min", "0")
    home.run("add", "-", "--no-wait", stdin="What waits.")
    found = findings(home.run("doctor", "--json"))
    assert found["jobs"] == "kb worker --drain"
    assert "kb sync-all --source" in found[os.fspath(tmp_path / "n")]


def test_a_wrong_setting(home: Home) -> None:
    """A file of settings that cannot be read is a finding, with its line."""
    (home.root / "kb.toml").write_text("[fetch]\nbytes_max = 'much'\n")
    ran = home.run("doctor", "--json")
    assert "settings" in findings(ran)
    assert "kb.toml:2" in ran.json["findings"][0]["problem"]


def test_a_damaged_model(tmp_path: Path) -> None:
    """A model folder without its files is named, where a home would begin with it."""
    (tmp_path / "model").mkdir()
    ran = Home(tmp_path / "none").run(
        "--cfg", "embed.kind=onnx", "--cfg", f"embed.model={tmp_path / 'model'}", "doctor", "--json"
    )
    assert "kb embedder set" in findings(ran)["model"]


def test_settings_that_ask_for_another_model(home: Home) -> None:
    """Where the settings name another model than the home has, that is said; its own is well."""
    ran = home.run("--cfg", "embed.kind=onnx", "doctor", "--json")
    assert "kb embedder set" in findings(ran)["model"]
    assert home.run("doctor").code == 0

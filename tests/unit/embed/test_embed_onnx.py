"""kb.intake.embed.onnx: what is wrong with a model is said, and loading is put off."""

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.errors import EmbedError, ModelMissing
from kb.intake.embed import onnx, runtime
from kb.intake.embed.factory import make_embedder
from kb.intake.embed.mapped_graph import with_mapped_weights
from kb.intake.embed.onnx import OnnxEmbedder, builtin_model_dir
from kb.model.embedder import EmbedderChoice


@pytest.fixture
def model_dir(tmp_path: Path) -> Path:
    """A copy of the built-in model that a test may damage."""
    return Path(shutil.copytree(builtin_model_dir(), tmp_path / "model"))


class _Session:
    """Gives the same output for every text."""

    def __init__(self, output: Any) -> None:
        self.output = output

    def run(self, names: None, feed: dict[str, Any]) -> list[Any]:
        if isinstance(self.output, Exception):
            raise self.output
        return [self.output]


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    """With the path and what to do next."""
    with pytest.raises(ModelMissing, match=r"nowhere.*install kb again"):
        OnnxEmbedder(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "model.json"])
def test_a_missing_file_is_said(model_dir: Path, name: str) -> None:
    """By the constructor, before any work is done."""
    (model_dir / name).unlink()
    with pytest.raises(ModelMissing, match=name):
        OnnxEmbedder(model_dir)


def test_a_card_that_is_no_card_is_said(model_dir: Path) -> None:
    """Another tool's model.json is not taken for ours."""
    (model_dir / "model.json").write_text('{"name": 1}')
    with pytest.raises(ModelMissing, match="there is no model"):
        OnnxEmbedder(model_dir)


def test_a_flipped_bit_in_the_graph_is_found(model_dir: Path) -> None:
    """Weights that are not those of model.json make no vectors."""
    raw = bytearray((model_dir / "model.onnx").read_bytes())
    raw[len(raw) // 2] ^= 1
    (model_dir / "model.onnx").write_bytes(raw)
    embedder = OnnxEmbedder(model_dir)
    assert embedder.count_tokens(["two words"]) == [2]
    with pytest.raises(ModelMissing, match=r"model\.onnx is not the file"):
        embedder.embed_query("x")


def test_a_cut_graph_is_found(model_dir: Path) -> None:
    """Half a file is a wrong file, whatever the runtime makes of it."""
    raw = (model_dir / "model.onnx").read_bytes()
    (model_dir / "model.onnx").write_bytes(raw[: len(raw) // 2])
    with pytest.raises(ModelMissing, match=r"model\.onnx is not the file"):
        OnnxEmbedder(model_dir).embed_query("x")


def test_a_graph_that_the_runtime_refuses_is_said(model_dir: Path) -> None:
    """A matching hash does not make it a model."""
    import hashlib

    (model_dir / "model.onnx").write_bytes(b"no graph")
    card = json.loads((model_dir / "model.json").read_text())
    card["files"]["model.onnx"] = hashlib.sha256(b"no graph").hexdigest()
    (model_dir / "model.json").write_text(json.dumps(card))
    with pytest.raises(ModelMissing, match="cannot be loaded"):
        OnnxEmbedder(model_dir).embed_query("x")


def test_another_tokenizer_is_found(model_dir: Path) -> None:
    """Other tokens would be other vectors."""
    raw = (model_dir / "tokenizer.json").read_bytes()
    (model_dir / "tokenizer.json").write_bytes(raw.replace(b'"the"', b'"teh"', 1))
    with pytest.raises(ModelMissing, match=r"tokenizer\.json is not the file"):
        OnnxEmbedder(model_dir).count_tokens(["x"])


@pytest.mark.parametrize(
    "output",
    [
        np.full(384, np.nan, np.float32),
        np.zeros(384, np.float32),
        np.ones(383, np.float32),
        np.ones((1, 384), np.float32),
        RuntimeError("out of memory"),
    ],
    ids=["nan", "zero", "short", "matrix", "raises"],
)
def test_what_is_no_unit_vector_does_not_leave(output: object) -> None:
    """EmbedError, for one text and for many."""
    embedder: Any = OnnxEmbedder(builtin_model_dir())
    embedder._session = _Session(output)
    with pytest.raises(EmbedError):
        embedder.embed_query("x")
    with pytest.raises(EmbedError):
        embedder.embed_documents(["x", "y", "z"])


def test_tokens_do_not_load_the_graph() -> None:
    """The chunker needs tokens alone, and no runtime for them."""
    probe = (
        "import sys\n"
        "from kb.intake.embed.factory import make_embedder\n"
        "from kb.model.embedder import EmbedderChoice\n"
        "e = make_embedder(EmbedderChoice(kind='onnx'))\n"
        "e.fingerprint, e.dim, e.scripts\n"
        "assert not {'numpy', 'tokenizers', 'onnxruntime'} & set(sys.modules)\n"
        "e.token_spans('two words')\n"
        "assert 'tokenizers' in sys.modules and 'onnxruntime' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", probe], check=True)


@pytest.mark.parametrize("text", ["", "tea", "unbelievable teapots, [SEP] naïve 茶", "x" * 600])
def test_the_tokens_of_one_text_are_those_of_many(text: str) -> None:
    """A short text is counted without the whole tokenizer, and as that counts it."""
    few, whole = OnnxEmbedder(builtin_model_dir()), OnnxEmbedder(builtin_model_dir())
    whole.token_spans("loads the whole tokenizer")
    assert few.count_tokens([text]) == whole.count_tokens([text])
    assert (few._tokenizer is None) == (len(text) < 600)
    assert few.count_tokens([]) == []
    assert few.count_tokens([text, "tea"]) == whole.count_tokens([text, "tea"])


def test_threads_share_one_embedder() -> None:
    """First use and later use from many threads: the vectors of one."""
    embedder = OnnxEmbedder(builtin_model_dir(), threads=2)
    texts = [f"text {n} of the lot" for n in range(8)]
    results: list[Any] = [None] * 6

    def embed(place: int) -> None:
        results[place] = embedder.embed_documents(texts)

    threads = [threading.Thread(target=embed, args=(place,)) for place in range(len(results))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = OnnxEmbedder(builtin_model_dir(), threads=1).embed_documents(texts)
    for result in results:
        np.testing.assert_array_equal(result, expected)


def test_special_tokens_in_a_text_are_text() -> None:
    """What a text quotes does not end it."""
    embedder = make_embedder(EmbedderChoice(kind="onnx"))
    assert embedder.token_spans("[SEP]") == [(0, 1), (1, 4), (4, 5)]
    one, other = embedder.embed_documents(["a [SEP] b", "a b"])
    assert float(one @ other) < 0.999


def test_the_model_is_what_its_card_says() -> None:
    """Every byte that ships is named; the graph stays small."""
    import hashlib

    folder = builtin_model_dir()
    card = json.loads((folder / "model.json").read_text())
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.name != "model.json"
    }
    assert found == card["files"]
    assert (folder / "model.onnx").stat().st_size < 24_000_000


def test_nothing_is_kept_of_its_use(tmp_path: Path) -> None:
    """The library that runs the graph counts no uses: all that is kept is that a file is whole."""
    code = (
        "from kb.intake.embed.onnx import OnnxEmbedder, builtin_model_dir\n"
        "OnnxEmbedder(builtin_model_dir()).embed_query('words')"
    )
    places = ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "TMPDIR")
    env = {"PATH": os.environ["PATH"], **dict.fromkeys(places, str(tmp_path))}
    subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=120)
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in kept] == ["verified-models.json"]
    model = builtin_model_dir() / "model.onnx"
    assert list(json.loads(kept[0].read_text())) == [str(model)]


def test_a_file_that_was_verified_is_hashed_again_once_it_changed(
    model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept of a file says nothing of the bytes that came later."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    hashed: list[Path] = []
    real = onnx._sha256_of
    monkeypatch.setattr(onnx, "_sha256_of", lambda path: (hashed.append(path), real(path))[1])
    graph = model_dir / "model.onnx"
    OnnxEmbedder(model_dir).embed_query("just written, so its times are not trusted")
    later_ns = graph.stat().st_ctime_ns + 2_100_000_000
    monkeypatch.setattr(onnx, "time", SimpleNamespace(time_ns=lambda: later_ns))
    for _ in range(3):
        OnnxEmbedder(model_dir).embed_query("words")
    assert hashed == [graph, graph]
    times = graph.stat().st_atime_ns, graph.stat().st_mtime_ns
    raw = bytearray(graph.read_bytes())
    raw[len(raw) // 2] ^= 1
    graph.write_bytes(raw)
    os.utime(graph, ns=times)
    with pytest.raises(ModelMissing, match=r"model\.onnx is not the file"):
        OnnxEmbedder(model_dir).embed_query("words")
    kept = tmp_path / "caches" / "kb" / "verified-models.json"
    kept.write_text("{")
    with pytest.raises(ModelMissing, match=r"model\.onnx is not the file"):
        OnnxEmbedder(model_dir).embed_query("words")


def test_mapped_weights_are_the_same_weights(model_dir: Path) -> None:
    """A graph that names its weights gives the vectors of the graph that holds them, bit by bit."""
    graph = model_dir / "model.onnx"
    small = with_mapped_weights(graph)
    assert small is not None
    assert len(small) < graph.stat().st_size // 20
    held = runtime.session_of(str(graph))
    mapped = runtime.session_of(small, weights_in=str(model_dir))
    for tokens in ([101, 102], [101, 30521, 2300, 102], [101, *range(1000, 1254), 102]):
        feed = {"input_ids": np.array(tokens, np.int64)}
        assert held.run(None, feed)[0].tobytes() == mapped.run(None, feed)[0].tobytes()


def test_a_runtime_that_cannot_map_weights_copies_them(
    model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those before 1.21."""
    asked: list[str] = []

    def unable(graph: str | bytes, weights_in: str = "") -> object:
        asked.append(weights_in)
        if weights_in:
            raise RuntimeError("no such file")
        return runtime.session_of(graph)

    monkeypatch.setattr(onnx, "session_of", unable)
    mine, whole = OnnxEmbedder(model_dir), OnnxEmbedder(builtin_model_dir())
    assert np.array_equal(mine.embed_query("a fox"), whole.embed_query("a fox"))
    assert asked[:2] == [str(model_dir), ""]


@given(st.binary(min_size=1, max_size=400))
def test_what_is_no_graph_has_no_mapped_weights(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes
) -> None:
    """Whatever the bytes are, they are left to the runtime."""
    file = tmp_path_factory.getbasetemp() / "no-graph.onnx"
    file.write_bytes(raw)
    assert with_mapped_weights(file) is None

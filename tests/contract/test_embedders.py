"""One suite over every embedder: each keeps what kb.intake.embed.protocol.Embedder promises."""

import importlib.util
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from embed_server import PATHS, embed_serving

from kb.intake.embed.factory import make_embedder
from kb.intake.embed.multilingual import model_dir
from kb.intake.embed.onnx import OnnxEmbedder
from kb.intake.embed.protocol import Embedder
from kb.intake.embed.scripts import SCRIPTS
from kb.model.embedder import EmbedderChoice, EmbedServer

NEEDS_ST = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "sentence_transformers")),
    reason="sentence-transformers is not installed; it comes with the extra kb-search[st]",
)
MULTILINGUAL = model_dir()
NEEDS_MULTILINGUAL = pytest.mark.skipif(
    MULTILINGUAL is None,
    reason="the multilingual model is not installed; `make multilingual` builds it",
)
STRANGE = {
    "empty": "",
    "blank": " \n\t ",
    "nul": "a\0b \0",
    "emoji": "😀 👨‍👩‍👧 🇨🇭",
    "cjk": "今天天气很好，我们去公园。カタカナ 한국어",
    "accents": "İstanbul naïve ﬁne Åse e\u0301",
    "surrogate": "before \ud83d after \udcff",
    "special": "[CLS] [SEP] [PAD] [MASK] <s> </s>",
    "one long word": "x" * 5_000,
    "very long": "the lease passes to the next worker. " * 5_000,
    "controls": "".join(map(chr, range(32))) + "\u200b\ufeff\u2028",
}
PLAIN = [
    "A lease lets one worker act while the others wait.",
    "Fold the egg whites into the batter.",
    "Glaciers carve valleys whose floors are flat, and whose walls are steep. " * 12,
    "tax law",
]


def _tiny_sentence_transformer(folder: Path) -> str:
    """A random BERT of 32 dimensions, saved as sentence-transformers does. Returns its folder."""
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    letters = [chr(code) for code in range(33, 127)]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters]
    vocabulary += [f"##{letter}" for letter in letters]
    bert = folder / "bert"
    bert.mkdir()
    (bert / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(str(bert))
    BertTokenizerFast(str(bert / "vocab.txt")).save_pretrained(str(bert))
    # A plain BERT becomes BERT and mean pooling.
    model = SentenceTransformer(str(bert), device="cpu")
    model.max_seq_length = 64
    model.save(str(folder / "tiny"))
    return str(folder / "tiny")


def _without_prefixes(folder: Path) -> str:
    """The multilingual model with a card that names no prefixes. Returns its folder."""
    assert MULTILINGUAL is not None
    for file in MULTILINGUAL.iterdir():
        (folder / file.name).symlink_to(file)
    card = json.loads((MULTILINGUAL / "model.json").read_bytes())
    (folder / "model.json").unlink()
    (folder / "model.json").write_text(
        json.dumps({**card, "query_prefix": "", "passage_prefix": ""})
    )
    return str(folder)


@pytest.fixture(
    scope="module",
    params=[
        "onnx",
        "hashing",
        "openai",
        "ollama",
        pytest.param("sentence-transformers", marks=NEEDS_ST),
        pytest.param("multilingual", marks=NEEDS_MULTILINGUAL),
    ],
)
def make(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Embedder]]:
    """Makes the embedder of this kind anew, with options."""
    kind, model = request.param, ""
    if kind in PATHS:
        with embed_serving(kind) as running:
            server = EmbedServer(base_url=running.base_url)
            yield lambda **options: make_embedder(
                EmbedderChoice(kind=kind, model="tiny", **options), server=server
            )
        return
    if kind == "sentence-transformers":
        model = _tiny_sentence_transformer(tmp_path_factory.mktemp("st"))
    elif kind == "multilingual":
        kind, model = "onnx", _without_prefixes(tmp_path_factory.mktemp("multilingual"))
    yield lambda **options: make_embedder(EmbedderChoice(kind=kind, model=model, **options))


@pytest.fixture(scope="module")
def embedder(make: Callable[..., Embedder]) -> Embedder:
    return make()


def test_it_describes_itself(embedder: Embedder) -> None:
    """Fingerprint, sizes and scripts are there before the first text."""
    assert embedder.fingerprint
    assert embedder.dim > 0
    assert embedder.tokens_max > 2
    assert embedder.scripts <= SCRIPTS | {"*"}
    assert embedder.scripts


def test_documents_become_unit_rows_in_their_order(embedder: Embedder) -> None:
    """float32 (n, dim), length 1, row i of text i whatever the lengths."""
    vectors = embedder.embed_documents(PLAIN)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(PLAIN), embedder.dim)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-4)
    backwards = embedder.embed_documents(PLAIN[::-1])
    np.testing.assert_allclose(backwards[::-1], vectors, atol=1e-5)


def test_a_query_becomes_one_unit_vector(embedder: Embedder) -> None:
    """float32 (dim,), and without prefixes the vector of the same document."""
    vector = embedder.embed_query(PLAIN[0])
    assert vector.dtype == np.float32
    assert vector.shape == (embedder.dim,)
    np.testing.assert_allclose(vector, embedder.embed_documents(PLAIN[:1])[0], atol=1e-5)


def test_no_texts_are_no_rows(embedder: Embedder) -> None:
    """Nothing in, (0, dim) out."""
    vectors = embedder.embed_documents([])
    assert vectors.shape == (0, embedder.dim)
    assert vectors.dtype == np.float32
    assert embedder.count_tokens([]) == []
    assert embedder.token_spans_batch([]) == []


@pytest.mark.parametrize("name", STRANGE)
def test_strange_texts_have_vectors(embedder: Embedder, name: str) -> None:
    """No text is refused, and none gives anything but a unit vector."""
    text = STRANGE[name]
    assert np.linalg.norm(embedder.embed_query(text)) == pytest.approx(1, abs=1e-4)
    assert embedder.embed_documents([text, text]).shape == (2, embedder.dim)


def test_the_same_text_has_the_same_vector(make: Callable[..., Embedder]) -> None:
    """Across calls and instances, bit for bit."""
    one, other = make(), make()
    assert one.fingerprint == other.fingerprint
    first = one.embed_documents(PLAIN)
    np.testing.assert_array_equal(one.embed_documents(PLAIN), first)
    np.testing.assert_array_equal(other.embed_documents(PLAIN), first)


def test_a_vector_does_not_depend_on_its_neighbours(embedder: Embedder) -> None:
    """Alone or among texts of other lengths: the same, to the rounding of floats."""
    together = embedder.embed_documents([*PLAIN, *STRANGE.values()])
    alone = np.stack([embedder.embed_query(text) for text in [*PLAIN, *STRANGE.values()]])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_what_is_past_tokens_max_is_not_read(embedder: Embedder) -> None:
    """Two texts that part only beyond it have one vector."""
    start = "the lease passes on . " * embedder.tokens_max
    ours, theirs = embedder.embed_documents([start + "glacier", start + "tax law"])
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize("name", [*STRANGE, "plain"])
def test_spans_slice_the_text(embedder: Embedder, name: str) -> None:
    """Inside the text, starts and ends ascending; as many as tokens are counted."""
    text = STRANGE.get(name, PLAIN[2])
    spans = embedder.token_spans(text)
    assert embedder.count_tokens([text]) == [len(spans)]
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert [start for start, _ in spans] == sorted(start for start, _ in spans)
    assert [end for _, end in spans] == sorted(end for _, end in spans)
    # Only tokens of one and the same character may share it.
    for (_, end), (start, after) in itertools.pairwise(spans):
        assert start >= end or (start, after) == (end - 1, end)


def test_spans_in_a_batch_are_those_of_each(embedder: Embedder) -> None:
    """token_spans_batch is token_spans of each text, in order."""
    texts = [*PLAIN, *STRANGE.values()]
    assert embedder.token_spans_batch(texts) == [embedder.token_spans(text) for text in texts]


def test_spans_cover_every_word(embedder: Embedder) -> None:
    """Between the tokens of plain prose lie only blanks, if those are no part of a token."""
    text = PLAIN[0]
    covered = set[int]()
    for start, end in embedder.token_spans(text):
        covered.update(range(start, end))
    assert {text[place] for place in range(len(text)) if place not in covered} <= {" "}


def test_prefixes_change_fingerprint_and_vectors(make: Callable[..., Embedder]) -> None:
    """A model with prefixes is another model; each prefix goes where it belongs."""
    plain, prefixed = make(), make(query_prefix="query: ", passage_prefix="passage: ")
    if plain.fingerprint.startswith("hashing:"):
        pytest.skip("hashing has no prefixes")
    assert prefixed.fingerprint != plain.fingerprint
    expected = plain.embed_documents(["query: tax law", "passage: tax law"])
    np.testing.assert_allclose(prefixed.embed_query("tax law"), expected[0], atol=1e-5)
    np.testing.assert_allclose(prefixed.embed_documents(["tax law"])[0], expected[1], atol=1e-5)


def test_the_built_in_model_knows_what_is_alike() -> None:
    """Foxes are nearer to foxes than to tax law, and a paraphrase nearer than shared words."""
    embedder = make_embedder(EmbedderChoice(kind="onnx"))
    query = embedder.embed_query("a quick brown fox")
    foxes, law = embedder.embed_documents(["fast brown foxes", "tax law"]) @ query
    assert foxes > 0.6
    assert law < 0.3
    query = embedder.embed_query("how do I restart the modem")
    steps, other = (
        embedder.embed_documents(
            ["Unplug the router, wait ten seconds, and plug it in again.", "How do I bake a cake?"]
        )
        @ query
    )
    assert steps > other


def test_the_built_in_model_reads_latin_alone() -> None:
    """So that a query in another script leaves the dense leg out."""
    assert make_embedder(EmbedderChoice(kind="onnx")).scripts == frozenset({"Latin"})


@NEEDS_MULTILINGUAL
def test_the_multilingual_model_knows_what_is_alike_in_other_languages() -> None:
    """A question is nearest to the passage that answers it, whichever languages the two are in."""
    embedder = make_embedder(EmbedderChoice(kind="multilingual"))
    assert (embedder.dim, embedder.tokens_max, embedder.scripts) == (384, 512, frozenset({"*"}))
    passages = [
        "拔掉路由器的电源，等十秒钟，再插上。",
        "Bake the cake for forty minutes at 180 degrees.",
        "Ο παγετώνας σκάβει κοιλάδες με επίπεδο πυθμένα.",
    ]
    questions = [
        "how do I restart the modem",
        "ケーキはどのくらい焼きますか",
        "Какую форму имеют долины, которые вырезал ледник?",
    ]
    vectors = embedder.embed_documents(passages)
    nearest = [int((vectors @ embedder.embed_query(question)).argmax()) for question in questions]
    assert nearest == [0, 1, 2]


@NEEDS_MULTILINGUAL
def test_the_multilingual_model_has_its_prefixes_from_its_card() -> None:
    """Unless a choice names others, which is another model."""
    ours = make_embedder(EmbedderChoice(kind="multilingual"))
    spelt = make_embedder(
        EmbedderChoice(kind="multilingual", query_prefix="query: ", passage_prefix="passage: ")
    )
    other = make_embedder(EmbedderChoice(kind="multilingual", query_prefix="search: "))
    assert ours.fingerprint == spelt.fingerprint != other.fingerprint
    assert (ours.embed_query("tax law") == spelt.embed_query("tax law")).all()
    assert (ours.embed_query("tax law") != ours.embed_documents(["tax law"])[0]).any()


@NEEDS_MULTILINGUAL
def test_a_short_text_has_its_vector_without_the_whole_tokenizer() -> None:
    """Bit for bit that of the whole one, which is not loaded for it."""
    quick, whole = (OnnxEmbedder(model_dir() or Path()) for _ in range(2))
    whole.token_spans("tea")
    for name in sorted(STRANGE.keys() - {"very long"}):
        text = STRANGE[name][:400]
        vector, counts = quick.embed_query(text), quick.count_tokens([text])
        assert quick._tokenizer is None, name
        assert counts == whole.count_tokens([text]) == [len(whole.token_spans(text))], name
        np.testing.assert_array_equal(whole.embed_query(text), vector, name)
        assert whole._pieces is None, name


@NEEDS_ST
def test_a_retrained_model_in_the_same_folder_has_another_fingerprint(tmp_path: Path) -> None:
    """Vectors of the old weights are told from those of the new."""
    import torch
    from sentence_transformers import SentenceTransformer

    folder = _tiny_sentence_transformer(tmp_path)
    before = make_embedder(EmbedderChoice(kind="sentence-transformers", model=folder))
    model = SentenceTransformer(folder, device="cpu")
    with torch.no_grad():
        next(iter(model.parameters())).add_(1)
    model.save(folder)
    after = make_embedder(EmbedderChoice(kind="sentence-transformers", model=folder))
    assert after.fingerprint != before.fingerprint
    assert json.dumps([after.dim, after.tokens_max]) == "[32, 64]"

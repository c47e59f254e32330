"""The scripts that build models: small made-up weights, against arithmetic spelt out in numpy."""

import struct
from math import erf

import build_multilingual
import numpy as np
import pytest
from encoder_graph import Array, Encoder, PackedRows, Shape, cosines, quantised_columns, vectors

SHAPE = Shape(name="tiny", dim=64, heads=2, layers=2, tokens_max=16, layer_norm_epsilon=1e-12)
WIDE = 128
WORDS = 50


def made_up(rng: np.random.Generator) -> tuple[dict[str, Array], Array, Array]:
    """Weights by name, and a 4-bit table as (words, blocks, 32) steps and their scales."""
    weights = {
        "embeddings.position_embeddings.weight": rng.normal(0, 0.3, (16, 64)),
        "embeddings.token_type_embeddings.weight": rng.normal(0, 0.3, (2, 64)),
    }
    sizes = {"intermediate.dense": (WIDE, 64), "output.dense": (64, WIDE)}
    for part in ("self.query", "self.key", "self.value", "output.dense"):
        sizes[f"attention.{part}"] = (64, 64)
    norms = ["embeddings.LayerNorm"]
    for layer in range(SHAPE.layers):
        prefix = f"encoder.layer.{layer}"
        norms += [f"{prefix}.attention.output.LayerNorm", f"{prefix}.output.LayerNorm"]
        for name, size in sizes.items():
            weights[f"{prefix}.{name}.weight"] = rng.normal(0, 0.1, size)
            weights[f"{prefix}.{name}.bias"] = rng.normal(0, 0.1, size[0])
    for name in norms:
        weights[f"{name}.weight"] = rng.normal(1, 0.1, 64)
        weights[f"{name}.bias"] = rng.normal(0, 0.1, 64)
    steps = rng.integers(-8, 8, (WORDS, 2, 32))
    scales = rng.uniform(0.01, 0.1, (WORDS, 2, 1)).astype(np.float16)
    return {name: row.astype(np.float32) for name, row in weights.items()}, steps, scales


def packed(steps: Array) -> Array:
    """Steps of -8 to 7 as (words, blocks, 16) bytes, the first half of a block in the low bits."""
    return (steps[..., :16] + 8 | (steps[..., 16:] + 8) << 4).astype(np.uint8)


def by_hand(weights: dict[str, Array], words: Array, ids: list[int]) -> Array:
    """The unit vector of a text, in float64: BERT with mean pooling, written down plainly."""

    def normed(x: Array, name: str) -> Array:
        unit = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
        return unit * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def dense(x: Array, name: str) -> Array:
        return x @ weights[f"{name}.weight"].T.astype(np.float64) + weights[f"{name}.bias"]

    places = weights["embeddings.position_embeddings.weight"][: len(ids)]
    x = words[ids] + places + weights["embeddings.token_type_embeddings.weight"][0]
    x = normed(x.astype(np.float64), "embeddings.LayerNorm")
    for layer in range(SHAPE.layers):
        prefix = f"encoder.layer.{layer}"
        query, key, value = (
            dense(x, f"{prefix}.attention.self.{part}").reshape(len(ids), SHAPE.heads, -1)
            for part in ("query", "key", "value")
        )
        near = np.einsum("qhd,khd->hqk", query, key) / np.sqrt(query.shape[2])
        share = np.exp(near) / np.exp(near).sum(axis=2, keepdims=True)
        seen = np.einsum("hqk,khd->qhd", share, value).reshape(len(ids), -1)
        x = x + dense(seen, f"{prefix}.attention.output.dense")
        x = normed(x, f"{prefix}.attention.output.LayerNorm")
        wide = dense(x, f"{prefix}.intermediate.dense")
        wide = wide * 0.5 * (1 + np.vectorize(erf)(wide / np.sqrt(2)))
        x = normed(x + dense(wide, f"{prefix}.output.dense"), f"{prefix}.output.LayerNorm")
    mean = x.mean(axis=0)
    return mean / np.linalg.norm(mean)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(59)


def test_the_graphs_compute_a_bert_encoder(rng: np.random.Generator) -> None:
    """The float graph to rounding, the int8 graph nearly, with words that lie in 4 bits."""
    weights, steps, scales = made_up(rng)
    words = (steps * scales.astype(np.float32)).reshape(WORDS, 64)
    table = PackedRows(nibbles=packed(steps), scales=scales)
    rows = [rng.integers(0, WORDS, tokens).tolist() for tokens in (1, 2, 7, 16)]
    reference, small = (
        Encoder(weights, SHAPE, int8=int8, words=table).model().SerializeToString()
        for int8 in (False, True)
    )
    expected = np.stack([by_hand(weights, words, row) for row in rows])
    np.testing.assert_allclose(vectors(reference, rows), expected, atol=2e-6)
    assert cosines(reference, small, rows).min() > 0.999


def test_words_in_four_bits_are_read_exactly(rng: np.random.Generator) -> None:
    """Low halves first, then high ones, each 8 above its value, times the scale of its block."""
    _, steps, scales = made_up(rng)
    table = PackedRows(nibbles=packed(steps), scales=scales)
    expected = (steps * scales.astype(np.float32)).reshape(WORDS, 64)
    np.testing.assert_array_equal(table.floats(), expected)


def test_no_product_of_neighbours_leaves_sixteen_bits(rng: np.random.Generator) -> None:
    """Whatever the activations are; and the steps are near to the weights."""
    weight = rng.normal(0, 1, (64, 8)).astype(np.float32)
    weight[:2, 0] = 5
    integers, scale = quantised_columns(weight)
    for sign in (1, -1):
        pairs = np.maximum(sign * integers.astype(int), 0).reshape(32, 2, 8).sum(axis=1)
        assert 255 * pairs.max() <= 32_767
    np.testing.assert_allclose(integers * scale, weight, atol=float(scale.max()) / 2)


def test_the_four_bit_file_is_read_as_it_is_laid_out(rng: np.random.Generator) -> None:
    """Header, tokenizer, directory, then tensors, of which each has one of two kinds."""
    _, steps, scales = made_up(rng)
    bias = rng.normal(0, 1, 64).astype("<f4")
    blocks = np.zeros((WORDS, 2), [("scale", "<f2"), ("nibbles", "u1", (16,))])
    blocks["scale"], blocks["nibbles"] = scales[..., 0], packed(steps)
    head = b"E5S1" + struct.pack("<I7ifi", 1, 64, 2, 2, WIDE, WORDS, 16, 2, 1e-12, 32)
    pieces = struct.pack("<5iQ", 3, 0, 2, 1, 3, 5) + bytes(4 * 4 + 3 * 4 + 5)
    normaliser = struct.pack("<iI", 1, 9) + bytes(9)
    tensors = [(b"emb.word", 1, blocks.tobytes(), blocks.size * 32), (b"b", 0, bias.tobytes(), 64)]
    place = len(head + pieces + normaliser) + 4 + sum(len(name) + 23 for name, *_ in tensors)
    directory = struct.pack("<i", len(tensors))
    for name, kind, raw, count in tensors:
        directory += struct.pack("<H", len(name)) + name
        directory += struct.pack("<BIQQ", kind, count, place, len(raw))
        place += len(raw)
    raw = head + pieces + normaliser + directory + b"".join(tensor[2] for tensor in tensors)

    file = build_multilingual.PackedWeights(raw)
    assert (file.dim, file.layers, file.heads, file.words, file.tokens_max) == (64, 2, 2, WORDS, 16)
    np.testing.assert_array_equal(file.floats("b", 64), bias)
    expected = (steps * scales.astype(np.float32)).reshape(WORDS, 64)
    np.testing.assert_array_equal(file.packed("emb.word", WORDS).floats(), expected)
    np.testing.assert_array_equal(file.floats("emb.word", 64), expected)
    with pytest.raises(SystemExit, match="not in 4 bits"):
        file.packed("b", 1)
    with pytest.raises(SystemExit, match="do not start as expected"):
        build_multilingual.PackedWeights(b"PK" + raw)

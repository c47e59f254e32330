"""A BERT encoder written as an ONNX graph of one text, in float32 or with int8 products.

Shared by the scripts that build kb's models. docs/adr/0004-the-built-in-model.md says why the graph
looks as it does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

INT8_MAX: Final = 127
UINT8_MAX: Final = 255
INT16_MAX: Final = 32767
# Just below the minimum of GELU, so that its shifted output uses all of an unsigned byte.
GELU_FLOOR: Final = 0.17
NIBBLE_ZERO: Final = 8
_MICROSOFT: Final = "com.microsoft"

Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What the weights do not say of an encoder."""

    name: str
    dim: int
    heads: int
    layers: int
    tokens_max: int
    layer_norm_epsilon: float


@dataclass(frozen=True, kw_only=True)
class PackedRows:
    """An embedding table in 4 bits, in blocks along each row that have a scale of their own.

    A block of 2n numbers is n bytes: the low halves hold its first n numbers, the high halves the
    others, each plus 8 and in steps of the scale.
    """

    nibbles: Array
    """(rows, blocks, n) uint8."""
    scales: Array
    """(rows, blocks, 1) float16."""

    def floats(self) -> Array:
        """(rows, blocks x 2n) float32."""
        halves = [self.nibbles & np.uint8(15), self.nibbles >> np.uint8(4)]
        steps = np.concatenate(halves, axis=2).astype(np.float32) - np.float32(NIBBLE_ZERO)
        return (steps * self.scales.astype(np.float32)).reshape(len(self.nibbles), -1)


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
    """Writes a BERT encoder as a graph of one text: input_ids (tokens,) in, vector (dim,) out.

    One text, because the step of int8 activations follows from their range: over a padded batch
    a text's vector would depend on its neighbours. `int8` False gives the same graph in float32.
    `words` is the table of words where it is packed; else it is among the weights.
    """

    def __init__(
        self,
        weights: dict[str, Array],
        shape: Shape,
        *,
        int8: bool,
        words: PackedRows | None = None,
    ) -> None:
        self.graph = Graph()
        self.weights = weights
        self.shape = shape
        self.int8 = int8
        self.words = words

    def model(self) -> onnx.ModelProto:
        """The whole model: embed, the layers, mean over tokens, L2 norm."""
        graph = self.graph
        graph.constant("rows", np.array([0], np.int64))
        graph.constant("columns", np.array([-1], np.int64))
        hidden = self._embedded()
        for layer in range(self.shape.layers):
            hidden = self._layer(hidden, f"encoder.layer.{layer}")
        mean = graph.op("ReduceMean", hidden, "rows", keepdims=0)
        graph.nodes.append(helper.make_node("LpNormalization", [mean], ["vector"], axis=-1, p=2))
        made = helper.make_graph(
            graph.nodes,
            self.shape.name,
            [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["tokens"])],
            [helper.make_tensor_value_info("vector", TensorProto.FLOAT, [self.shape.dim])],
            list(graph.constants.values()),
        )
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid(_MICROSOFT, 1)]
        return helper.make_model(made, opset_imports=opsets, ir_version=9, producer_name="kb")

    def _embedded(self) -> str:
        graph = self.graph
        words = self._packed_words(self.words) if self.words else self._plain_words()
        # A text is one segment, so the segment's vector is part of each position's.
        places = self.weights["embeddings.position_embeddings.weight"][: self.shape.tokens_max]
        places = places + self.weights["embeddings.token_type_embeddings.weight"][0]
        length = graph.op("Shape", "input_ids")
        place = graph.op("Slice", graph.constant("places", places), "rows", length, "rows")
        return self._normalised(graph.op("Add", words, place), "embeddings.LayerNorm")

    def _plain_words(self) -> str:
        graph = self.graph
        table = self.weights["embeddings.word_embeddings.weight"]
        if not self.int8:
            return graph.op("Gather", graph.constant("words", table), "input_ids")
        rows, scale = quantised_rows(table)
        words = graph.op("Gather", graph.constant("words", rows), "input_ids")
        words = graph.op("Cast", words, to=TensorProto.FLOAT)
        scales = graph.op("Gather", graph.constant("words.scale", scale), "input_ids")
        return graph.op("Mul", words, scales)

    def _packed_words(self, table: PackedRows) -> str:
        # Spelt out in plain operations: every runtime has them, and none of them rounds.
        graph = self.graph
        packed = graph.op("Gather", graph.constant("words", table.nibbles), "input_ids")
        low = graph.op("BitwiseAnd", packed, graph.constant("15", np.uint8(15)))
        high = graph.op("BitShift", packed, graph.constant("4", np.uint8(4)), direction="RIGHT")
        steps = graph.op("Cast", graph.op("Concat", low, high, axis=2), to=TensorProto.FLOAT)
        steps = graph.op("Sub", steps, graph.constant("8", float(NIBBLE_ZERO)))
        scales = graph.op("Gather", graph.constant("words.scale", table.scales), "input_ids")
        words = graph.op("Mul", steps, graph.op("Cast", scales, to=TensorProto.FLOAT))
        row = np.array([-1, self.shape.dim], np.int64)
        return graph.op("Reshape", words, graph.constant("row", row))

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
            num_heads=self.shape.heads,
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
        epsilon = graph.constant("epsilon", self.shape.layer_norm_epsilon)
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


def vectors(model: bytes, rows: Sequence[Sequence[int]]) -> Array:
    """(len(rows), dim): each row of token ids through the graph, one at a time."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return np.stack([session.run(None, {"input_ids": np.array(row, np.int64)})[0] for row in rows])


def cosines(reference: bytes, small: bytes, rows: Sequence[Sequence[int]]) -> Array:
    """(len(rows),): cosine of each row's vector by one graph with that by the other."""
    found: Array = (vectors(reference, rows) * vectors(small, rows)).sum(axis=1)
    return found

"""A cross-encoder of a few hundred bytes: it counts the query's pairs of words in a passage.

Bags of words and of their hashes cannot tell "dog bites man" from "man bites dog"; this can.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from kb.search.rerank.scores import logistic

PAIR = 2.0
"""The logit of each pair that stands in the passage."""
NONE = -4.0
"""The logit of a passage without any."""


def write_cross_encoder(folder: Path, words: str, *, labels: int = 1, tokens_max: int = 64) -> Path:
    """Write model.onnx and tokenizer.json; it knows these words, and all others are one."""
    folder.mkdir(parents=True, exist_ok=True)
    special = ("[UNK]", "[CLS]", "[SEP]")
    vocabulary = dict.fromkeys((*special, *words.casefold().split()))
    tokenizer = Tokenizer(
        models.WordLevel({word: n for n, word in enumerate(vocabulary)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    tokenizer.enable_truncation(tokens_max)
    tokenizer.save(str(folder / "tokenizer.json"))
    onnx.save(_graph(labels), str(folder / "model.onnx"))
    return folder


def score_of(pairs: int) -> float:
    """The score of a passage with so many pairs."""
    return round(logistic(NONE + PAIR * pairs), 6)


def _graph(labels: int) -> onnx.ModelProto:
    """Counts (i, j), i in the query and j in the passage, at which two words are the same."""
    nodes = [*_nodes()]
    constants = dict(_CONSTANTS)
    output = "yes"
    if labels == 2:
        # The first logit is not 0, so that a softmax tells from the logistic function of one.
        constants["no"] = np.array([[1.0]], np.float32)
        nodes += [
            helper.make_node("Add", ["yes", "no"], ["shifted"]),
            helper.make_node("Concat", ["no", "shifted"], ["both"], axis=1),
        ]
        output = "both"
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, [1, "n"]) for name in names]
    graph = helper.make_graph(
        nodes,
        "pairs",
        inputs,
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, [1, labels])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=9)


_CONSTANTS = {
    "begin": np.array([0], np.int64),
    "next": np.array([1], np.int64),
    "last": np.array([-1], np.int64),
    "end": np.array([1 << 30], np.int64),
    "axes": np.array([0], np.int64),
    "shape": np.array([1, 1], np.int64),
    "special": np.array(2, np.int64),
    "pair": np.array(PAIR, np.float32),
    "none": np.array(NONE, np.float32),
}


def _nodes() -> Iterator[onnx.NodeProto]:
    node = helper.make_node
    for name, source in (("ids", "input_ids"), ("types", "token_type_ids")):
        yield node("Squeeze", [source, "axes"], [name])
        yield node("Slice", [name, "begin", "last"], [f"{name}_first"])
        yield node("Slice", [name, "next", "end"], [f"{name}_second"])
    tables = {
        "same_first": ("ids_first", "Equal"),
        "same_second": ("ids_second", "Equal"),
        # True where the row is of the query and the column of the passage.
        "is_across": ("types_first", "Less"),
    }
    for out, (source, kind) in tables.items():
        yield node("Unsqueeze", [source, "next"], [f"{out}_rows"])
        yield node("Unsqueeze", [source, "axes"], [f"{out}_columns"])
        yield node(kind, [f"{out}_rows", f"{out}_columns"], [out])
    yield node("Greater", ["ids_first", "special"], ["word_first"])
    yield node("Greater", ["ids_second", "special"], ["word_second"])
    yield node("And", ["word_first", "word_second"], ["are_words"])
    yield node("Unsqueeze", ["are_words", "axes"], ["are_words_row"])
    yield node("And", ["same_first", "same_second"], ["same"])
    yield node("And", ["same", "is_across"], ["same_across"])
    yield node("And", ["same_across", "are_words_row"], ["matches"])
    yield node("Cast", ["matches"], ["counted"], to=TensorProto.FLOAT)
    yield node("ReduceSum", ["counted"], ["pairs"], keepdims=0)
    yield node("Mul", ["pairs", "pair"], ["scaled"])
    yield node("Add", ["scaled", "none"], ["sum"])
    yield node("Reshape", ["sum", "shape"], ["yes"])

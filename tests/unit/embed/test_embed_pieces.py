"""A few pieces of a vocabulary cut a text as all of them would."""

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from kb.intake.embed.onnx import builtin_model_dir
from kb.intake.embed.pieces import Pieces, packed
from kb.intake.embed.wordpiece import WordPieces

TEXTS = (
    "",
    " ",
    "teapot tea pot",
    "a tea in the potato",
    "ＴＥＡ ﬁne",
    "茶茶壶 茶",
    "unknown ☃ signs ☃☃",
    "<s> </s> <mask>",
    "tea\0 \n\t pot",
    "ttttttttttt",
)


@pytest.fixture(scope="module")
def tokenizer() -> bytes:
    """A Unigram tokenizer of made-up pieces, of which some are parts of others."""
    words = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁tea", "▁teapot", "tea", "pot", "▁pot", "ato"]
    words += [
        *"abcdefghijklmnopqrstuvwxyz",
        "in",
        "the",
        "▁the",
        "茶",
        "▁茶",
        "茶壶",
        "fi",
        "<mask>",
    ]
    rng = np.random.default_rng(0)
    vocab = [[word, -float(rng.uniform(2, 12)) if word[0] != "<" else 0.0] for word in words]
    special = {
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }
    around = [
        {"SpecialToken": {"id": "<s>", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "</s>", "type_id": 0}},
    ]
    described = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": words.index(word), "content": word, **special}
            for word in words
            if word[0] == "<"
        ],
        "normalizer": {"type": "NFKC"},
        "pre_tokenizer": {
            "type": "Metaspace",
            "replacement": "▁",
            "prepend_scheme": "always",
            "split": True,
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": around,
            "pair": around,
            "special_tokens": {
                word: {"id": word, "ids": [words.index(word)], "tokens": [word]}
                for word in ("<s>", "</s>")
            },
        },
        "decoder": None,
        "model": {"type": "Unigram", "unk_id": 3, "vocab": vocab, "byte_fallback": False},
    }
    return json.dumps(described).encode()


@pytest.mark.parametrize("text", TEXTS)
def test_a_few_pieces_give_the_tokens_of_all(tokenizer: bytes, text: str) -> None:
    """Ids, special tokens and unknown signs included."""
    whole = Tokenizer.from_buffer(tokenizer)
    whole.encode_special_tokens = True
    assert Pieces(packed(tokenizer)).ids(text) == whole.encode(text).ids


def test_the_file_is_the_same_each_time(tokenizer: bytes) -> None:
    """So that its SHA-256 can be pinned."""
    assert packed(tokenizer) == packed(tokenizer)


def test_another_model_is_refused(tokenizer: bytes) -> None:
    """Only Unigram chooses among pieces that occur."""
    other = json.loads(tokenizer)
    other["model"]["type"] = "BPE"
    with pytest.raises(ValueError, match="BPE"):
        packed(json.dumps(other).encode())


@pytest.fixture(scope="module")
def wordpiece() -> tuple[WordPieces, Tokenizer]:
    """The built-in model's tokenizer, both ways."""
    raw = (builtin_model_dir() / "tokenizer.json").read_bytes()
    whole = Tokenizer.from_buffer(raw)
    whole.no_truncation()
    whole.no_padding()
    whole.encode_special_tokens = True
    return WordPieces(raw), whole


@given(text=st.text(max_size=120) | st.text("abcdefghi -'[]#ÉüßСя茶ไ\0\n", max_size=120))
@example("internationalisation of unbelievable teapots")
@example("[SEP] [MASK]x [UNK] ##ing")
@example("ﬁne naïve ＦＵＬＬ x茶y don't https://a.b/c?d=e")
@example("x" * 100 + " " + "x" * 101)
def test_few_word_pieces_give_the_tokens_of_all(
    wordpiece: tuple[WordPieces, Tokenizer], text: str
) -> None:
    """Whatever the text: ids, special tokens and unknown words included."""
    few, whole = wordpiece
    assert few.ids(text) == whole.encode(text).ids


def test_another_model_than_wordpiece_is_refused(tokenizer: bytes) -> None:
    """Its pieces are chosen by another rule."""
    with pytest.raises(ValueError, match="Unigram"):
        WordPieces(tokenizer)

"""Claims about passages measured by the built-in model's own tokenizer."""

from pathlib import Path
from typing import Any

import pytest

from kb.intake.chunker.chunking import chunk
from kb.model.text import indexed_text

_FILE = Path(__file__).parents[3] / "models" / "all-MiniLM-L6-v2-int8" / "tokenizer.json"


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    if not _FILE.exists():
        pytest.skip("the built-in model is not in this checkout")
    from tokenizers import Tokenizer

    made = Tokenizer.from_file(str(_FILE))
    made.no_truncation()
    made.no_padding()
    return made


_TEXTS = {
    "prose": "# Notes on naïve cafés\n\n" + "The quick brown fox, aged 7½, wouldn't jump. " * 120,
    "chinese": "# 标题\n\n" + "今天天气很好，我们去公园散步。" * 80,
    "links": "# Links\n\n" + "- see https://example.org/a/very/long_path?query=one&more=two\n" * 60,
    "no spaces": "unbelievable-" * 400,
    "unknown words": "q" * 20_000,
    "emoji": "\U0001f469\u200d\U0001f4bb\U0001f600 " * 500,
}


@pytest.mark.parametrize("name", list(_TEXTS))
def test_what_is_embedded_fits_the_model(tokenizer: Any, name: str) -> None:
    """Title, path and passage together, with the special tokens, are 256 tokens at most."""

    def spans_of(texts: list[str]) -> list[list[tuple[int, int]]]:
        found = tokenizer.encode_batch(texts, add_special_tokens=False)
        return [one.offsets for one in found]

    title = "A title of some length"
    passages = chunk(_TEXTS[name], spans_of=spans_of, title=title)
    assert len(passages) > 1
    for passage in passages:
        embedded = indexed_text(title, passage.heading, passage.text)
        assert len(tokenizer.encode(embedded).ids) <= 256

"""Whatever a program asks for is answered: a query has no syntax that it could break."""

from pathlib import Path
from random import Random
from typing import Final

import kb

PIECES: Final = (
    *(
        '"',
        '-"',
        '": ',
        "-",
        "tag:",
        "title:",
        "source:",
        "kind:",
        "since:",
        "until:",
        "::",
        "2024",
    ),
    *("2024-13-45", "soup", "suop", '"boiled soup"', " ", " ", " ", "\n", "\0", "\ud800", "\u202e"),
    *("(", ")", "*", "?", "\\", "AND", "NOT", "^2", "~", "[a TO b]", "{", "/", "%", "=", "def f()"),
    *(
        "fooBar",
        "_x",
        "--flag",
        "a.py:12",
        "é",
        "\u0301",
        "ﬁ",
        "ＡＢ",
        "Ⅷ",
        "臺灣",
        "日本",
        "ไทย",
        "한국",
    ),
    *("🙂", "x" * 300),
)


def test_no_query_is_an_error(tmp_path: Path) -> None:
    """Of operators, of other engines' syntax and of any characters; scores fall from 1 to 0."""
    (tmp_path / "soup.md").write_text("# Soup\n\nBoiled soup, 日本 and ไทย.\n")
    random = Random(17)
    answered = 0
    with kb.open(tmp_path / "home", settings={"embed.kind": "hashing"}) as home:
        home.add(tmp_path / "soup.md")
        for _ in range(300):
            query = "".join(random.choices(PIECES, k=random.randint(0, 9)))
            result = home.search(query, k=3)
            assert result.query == query
            scores = [hit.score for hit in result.hits]
            assert scores == sorted(scores, reverse=True)
            assert all(0.0 <= score <= 1.0 for score in scores)
            answered += bool(scores)
    assert answered > 50

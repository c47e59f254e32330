"""Pages that hosts have of a repository's files."""

import pytest

from kb.model.repository_view import repository_view


@pytest.mark.parametrize(
    ("source", "line", "page"),
    [
        (
            "git+https://github.com/ada/boats@main#docs/a%20b.md",
            7,
            "https://github.com/ada/boats/blob/main/docs/a%20b.md#L7",
        ),
        (
            "git+ssh://git@github.com/ada/boats.git#a.md",
            None,
            "https://github.com/ada/boats/blob/HEAD/a.md",
        ),
        (
            "git+https://gitlab.com/x/y/boats.git@v1#a.md",
            3,
            "https://gitlab.com/x/y/boats/-/blob/v1/a.md#L3",
        ),
        (
            "git+https://bitbucket.org/ada/b@main#a.py",
            3,
            "https://bitbucket.org/ada/b/src/main/a.py#lines-3",
        ),
        ("git+https://codeberg.org/a/b@x/y#a", None, "https://codeberg.org/a/b/src/x/y/a"),
        ("git+https://git.example/a@main#a.md", None, None),
        ("git+file:///srv/a@main#a.md", None, None),
        ("https://github.com/ada/boats", None, None),
    ],
)
def test_the_page_of_a_file(source: str, line: int | None, page: str | None) -> None:
    """For hosts whose form of addresses is known."""
    assert repository_view(source, line) == page

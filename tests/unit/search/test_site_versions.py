"""Versions of sites: read from addresses, counted, and filtered by."""

import pytest

from kb.model.site_version import site_version


@pytest.mark.parametrize(
    ("source", "version"),
    [
        ("https://docs.example/v1/start", "v1"),
        ("https://docs.example/V2.3/start", "v2.3"),
        ("https://x.example/en/latest/a.html", "latest"),
        ("https://x.example/projects/y/en/stable/a/b", "stable"),
        ("https://docs.python.example/3.11/library/os.html", "3.11"),
        ("https://x.example/docs/16/sql.html", "16"),
        ("https://x.example/docs/1.0-beta.2/a", "1.0-beta.2"),
        ("https://x.example/docs/5.x/a", "5.x"),
        ("https://x.example/api/v2/docs/v9/a", "v2"),
        ("git+https://x.example/ada/boats@v1.2#docs/a.md", "v1.2"),
        ("git+https://x.example/ada/boats@main#a.md", "main"),
        ("git+https://x.example/ada/boats@topic/sails#a.md", None),
        ("https://x.example/2024/05/12/post", None),
        ("https://x.example/page/2/", None),
        ("https://x.example/a/b/c/d/next/f", None),
        ("https://x.example/guide/v2", None),
        ("https://x.example/guide?at=/v2/", None),
        ("https://v2.example/guide/", None),
        ("/home/ada/v1/notes.md", None),
    ],
)
def test_what_an_address_says(source: str, version: str | None) -> None:
    """A folder that is a version by its form; dates, pages of lists and files are none."""
    assert site_version(source) == version

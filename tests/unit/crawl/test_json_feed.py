"""What is in a JSON feed?"""

import json

import pytest

from kb.errors import Unparsable
from kb.intake.crawl.feed import read_feed
from kb.intake.sync.lists import list_kind

URL = "https://weirs.example/feed.json"
FEED = {
    "version": "https://jsonfeed.org/version/1.1",
    "title": "Weirs",
    "items": [
        {
            "id": "1",
            "url": "/flood",
            "title": "Flood",
            "content_html": "<p>High water.</p>",
            "date_published": "2024-03-01T10:00:00Z",
            "date_modified": "2024-03-02T10:00:00Z",
        },
        {"id": "https://weirs.example/2", "content_text": "1 < 2", "tags": ["a"]},
        {"id": 3, "url": "https://weirs.example/drought", "summary": "Dry."},
        "no entry",
    ],
}


def test_its_entries_are_those_of_any_feed() -> None:
    """Addresses are joined, texts are pages, and an entry without one is asked for."""
    data = json.dumps(FEED, indent=1).encode()
    assert list_kind(data) == "feed"
    flood, note, drought = read_feed(data, URL, 100)
    assert (flood.url, flood.title, flood.content) == (
        "https://weirs.example/flood",
        "Flood",
        "<p>High water.</p>",
    )
    assert (flood.date, flood.version) == ("2024-03-01T10:00:00Z", "2024-03-02T10:00:00Z")
    assert note.content == "<p>1 &lt; 2</p>"
    assert (drought.url, drought.content) == ("https://weirs.example/drought", None)
    assert len(read_feed(data, URL, 1)) == 1


def test_other_json_is_a_page() -> None:
    """Only the address of the format says what it is; what is damaged is refused."""
    assert list_kind(b'{"version": "1", "items": []}') is None
    assert list_kind(b'{"version":"https:\\/\\/jsonfeed.org\\/version\\/1","items":[]}') == "feed"
    with pytest.raises(Unparsable):
        read_feed(b'{"version": "https://jsonfeed.org/version/1", ', URL, 100)

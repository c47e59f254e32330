"""Which addresses are pages of a site, told by the address alone."""

import pytest

from kb.intake.crawl.lastmod import is_settled
from kb.intake.crawl.scope import SiteScope, calendar_shape, trap_reason, twins
from kb.model.site import SiteOptions

DAY_MS = 86_400_000
NOON_MS = 1_709_294_400_000  # 2024-03-01T12:00:00Z


def scope(start: str = "https://docs.example/guide/", **options: tuple[str, ...]) -> SiteScope:
    return SiteScope(start, SiteOptions(**options))


@pytest.mark.parametrize(
    ("reference", "address"),
    [
        ("page.html#part", "https://docs.example/guide/page.html"),
        (" two words.html\n", "https://docs.example/guide/two%20words.html"),
        ("../up", "https://docs.example/up"),
        ("?page=2", "https://docs.example/guide/?page=2"),
        ("//docs.example/x", "https://docs.example/x"),
        ("http://docs.example/x", "https://docs.example/x"),
        ("/x?utm_source=a&b=1&PHPSESSID=2&fbclid=3", "https://docs.example/x?b=1"),
        ("/x?sid=1", "https://docs.example/x"),
        ("/x;jsessionid=77?a=1", "https://docs.example/x?a=1"),
        ("/(S(abc123))/x", "https://docs.example/x"),
        ("/%7euser/%e6", "https://docs.example/~user/%E6"),
        ("https://other.example/x", None),
        ("https://docs.example:8443/x", None),
        ("https://docs.example@other.example/", None),
        ("mailto:me@docs.example", None),
        ("javascript:go()", None),
        ("#part", None),
        ("", None),
        ("/" + "x" * 3_000, None),
        ("https://[", None),
    ],
)
def test_an_address_has_one_form(reference: str, address: str | None) -> None:
    """Without fragment, session and campaign; None for what is on no page of this host."""
    assert scope().address("https://docs.example/guide/", reference) == address


def test_a_reference_is_seen_from_its_page() -> None:
    """Also from a page with a query, and from one that is no folder."""
    one = scope()
    assert one.address("https://docs.example/a/b?c=/d/", "e") == "https://docs.example/a/e"
    assert one.address("https://docs.example/a/b?c", "?d") == "https://docs.example/a/b?d"


@pytest.mark.parametrize(
    ("start", "inside", "outside"),
    [
        ("https://a.example/", "/x/y", None),
        ("https://a.example", "/x", None),
        ("https://a.example/guide/", "/guide/x", "/guided/x"),
        ("https://a.example/guide", "/guide/x", "/guided"),
        ("https://a.example/guide/intro.html", "/guide/x", "/other"),
    ],
)
def test_a_site_lies_below_its_start(start: str, inside: str, outside: str | None) -> None:
    """Below its folder, or below the address itself where it is one."""
    one = scope(start)
    assert one.has(one.start)
    assert one.has(f"https://a.example{inside}")
    assert outside is None or not one.has(f"https://a.example{outside}")


@pytest.mark.parametrize(
    ("path", "taken"),
    [
        ("/guide/x", True),
        ("/v2", True),
        ("/v2/x", True),
        ("/v20", False),
        ("/api/fr/x.html", True),
        ("/guide/old/x", False),
        ("/guide/old", False),
        ("/blog", False),
    ],
)
def test_globs_choose(path: str, taken: bool) -> None:
    """A glob without a star means all below it; what is excluded is out."""
    one = scope(include=("/guide/*", "v2", "/*/fr/*.html"), exclude=("/guide/old",))
    assert one.has(f"https://docs.example{path}") is taken


@pytest.mark.parametrize(
    "name",
    ["a.png", "a.css", "a.JS", "a.zip", "a.xml", "a.rss", "sitemap.xml", "llms.txt", "robots.txt"],
)
def test_what_is_no_page_is_left_alone(name: str) -> None:
    """By its ending or its name, before it is asked for."""
    assert not scope().has(f"https://docs.example/guide/{name}")


@pytest.mark.parametrize("name", ["a", "a.html", "a.md", "a.pdf", "a.php?x=1", "v1.2", "png"])
def test_what_may_be_a_page_is_asked_for(name: str) -> None:
    """Whatever else its address ends in."""
    assert scope().has(f"https://docs.example/guide/{name}")


@pytest.mark.parametrize(
    ("path", "is_trap"),
    [
        ("/en/api/en/api/x", False),
        ("/a/b/a/b/a/b/x", True),
        ("/2024/2024/2024/x", False),
        ("/" + "/".join(map(str, range(30))), True),
        ("/" + "x" * 1_000, True),
    ],
)
def test_paths_that_repeat_are_traps(path: str, is_trap: bool) -> None:
    """Three times the same part, too many parts, or too many characters."""
    assert (trap_reason(f"https://a.example{path}") is not None) is is_trap


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("/cal/2024/05/", "cal/#/#/"),
        ("/cal?month=5&year=2024", "cal?month=#&year=#"),
        ("/events/2024-05-06", "events/#-#-#"),
        ("/blog/2024/05/a-title", "blog/#/#/a-title"),
        ("/issue/202455", None),
        ("/rfc9309", None),
        ("/page-12.html", None),
    ],
)
def test_a_calendar_is_known_by_its_dates(path: str, shape: str | None) -> None:
    """Pages that differ in their dates alone have one shape; a title makes another one."""
    assert calendar_shape(f"https://a.example{path}") == shape


def test_the_markdown_of_a_page_has_a_twin() -> None:
    """Whichever form the page's address has."""
    assert "https://a.example/x.html" in twins("https://a.example/x.html.md") + twins(
        "https://a.example/x.md"
    )
    assert "https://a.example/x/" in twins("https://a.example/x.md")
    assert "https://a.example/x/" in twins("https://a.example/x/index.html.md")
    assert twins("https://a.example/x") == ()


@pytest.mark.parametrize(
    ("lastmod", "after_ms", "settled"),
    [
        ("2024-03-01T12:00:00Z", 2_000, True),
        ("2024-03-01T12:00:00Z", 500, False),
        ("2024-03-01T13:00:00+01:00", 2_000, True),
        ("2024-03-01", 3_600_000, False),
        ("2024-03-01", 2 * DAY_MS, True),
        ("2024-03-01T12:00:00", 3_600_000, False),
        ("yesterday", 9 * DAY_MS, False),
        ("2024-13-01", 9 * DAY_MS, False),
        ("9999-12-31", 9 * DAY_MS, False),
        ("", 9 * DAY_MS, False),
    ],
)
def test_a_date_settles_what_was_asked_for_after_it(
    lastmod: str, after_ms: int, settled: bool
) -> None:
    """A page may change again on the day, or in the second, that the sitemap names."""
    assert is_settled(lastmod, NOON_MS + after_ms) is settled

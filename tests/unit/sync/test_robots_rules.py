"""What a robots.txt says, by its text alone."""

import pytest

from kb.intake.sync.robots_rules import CRAWL_DELAY_S_MAX, parse_robots

SAID = """\
# for all
User-agent: *
Disallow: /private/
Allow: /private/open   # but this
Disallow: /*.php$
Disallow: /a*b*c
Disallow: /caf\u00e9
Crawl-delay: 2.5

User-agent: other
User-agent: third/2.0
Disallow: /

Sitemap: https://docs.example/sitemap.xml#part
sitemap: https://docs.example/more.xml
"""


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/", True),
        ("/private/x", False),
        ("/private/open/x", True),
        ("/private", True),
        ("/x.php", False),
        ("/x.php?q", True),
        ("/x.phpx", True),
        ("/a1b2c3", False),
        ("/a1c2b3", True),
        ("/caf%C3%A9/menu", False),
        ("/caf%c3%a9", False),
    ],
)
def test_the_longest_rule_decides(path: str, allowed: bool) -> None:
    """Stars stand for anything, a dollar for the end, and escapes are compared in one form."""
    assert parse_robots(SAID, "kb/1").allows(path) is allowed


def test_the_group_that_names_the_program_counts() -> None:
    """It alone; one group may name several, and a name may carry a version."""
    assert not parse_robots(SAID, "other/3").allows("/")
    assert not parse_robots(SAID, "Third/1").allows("/x")
    assert parse_robots(SAID, "third/1").crawl_delay_s == 0.0
    assert parse_robots("User-agent: kbx\nDisallow: /", "kb/1").allows("/")


def test_of_equally_long_rules_the_one_that_allows_counts() -> None:
    """The order in the file does not matter."""
    for lines in ("Disallow: /x\nAllow: /x", "Allow: /x\nDisallow: /x"):
        assert parse_robots(f"User-agent: *\n{lines}\n", "kb").allows("/x")


def test_sitemaps_and_delays_are_read() -> None:
    """Sitemaps are for all; a delay is a finite time, within bounds."""
    rules = parse_robots(SAID, "kb/1")
    assert rules.sitemaps == (
        "https://docs.example/sitemap.xml#part",
        "https://docs.example/more.xml",
    )
    assert rules.crawl_delay_s == 2.5
    for said, delay_s in (("nan", 0.0), ("-3", 0.0), ("soon", 0.0), ("1e9", CRAWL_DELAY_S_MAX)):
        assert parse_robots(f"User-agent: *\nCrawl-delay: {said}", "kb").crawl_delay_s == delay_s


def test_a_hostile_pattern_takes_no_time() -> None:
    """Each star is looked for once."""
    text = "User-agent: *\nDisallow: /" + "*a" * 5_000 + "$\n"
    assert parse_robots(text, "kb").allows("/" + "a" * 4_000)


@pytest.mark.parametrize("text", ["", "Disallow: /", "User-agent: *\nDisallow:", "<html>no</html>"])
def test_what_says_nothing_forbids_nothing(text: str) -> None:
    """Rules outside of a group, empty rules and other files are no wishes."""
    assert parse_robots(text, "kb").allows("/x")

"""A crawl that is killed goes on where it was: each page once, and none lost."""

import signal
from pathlib import Path
from typing import Final

from crash_rig import CFG, Rig
from doc_site import DocPage, DocSite, text_of
from loopback import Answer, moved, serving

KILLED: Final = -signal.SIGKILL
PAGES: Final = 60
# What a kill may lose: the pages that were asked for and not yet committed with their batch.
LOST_MAX: Final = 4 + 16
# Before and after each step that makes a page durable.
STEPS: Final = (
    ("content.after_link", 14),
    ("ingest.before_commit", 1),
    ("ingest.after_commit", 1),
    ("store.after_commit", 4),
)


def with_corners(site: DocSite) -> None:
    """Traps, redirects, a failing page, and what robots.txt forbids."""
    site.fill(PAGES)
    site.traps = True
    site.robots = "User-agent: *\nDisallow: /hidden/\nDisallow: /calendar/\n"
    site.pages["/hidden/x.html"] = DocPage("Hidden", text_of("hidden"))
    site.pages["/"].links += ("/hidden/x.html", "/old", "/fails", "/noindex")
    site.pages["/noindex"] = DocPage("N", "n", extra='<meta name="robots" content="noindex">')
    site.routes["/old"] = moved("/chapter-0/", 301)
    site.routes["/fails"] = Answer(b"", 500)


def test_a_crawl_killed_again_and_again(tmp_path: Path) -> None:
    """The same command takes all pages in, and asks again only for what was not committed."""
    with serving() as server:
        site = DocSite(server)
        with_corners(site)
        wanted = {site.url(p) for p in site.pages} - {
            site.url("/hidden/x.html"),
            site.url("/noindex"),
        }
        rig = Rig(tmp_path, cfg=(*CFG, 'fetch.allow=["127.0.0.1"]'))
        add = ("add", "--crawl", site.url("/"), "--no-wait", "--json")
        kills = 0
        for step, hit in STEPS:
            kills += rig.run(*add, armed=f"{step}=kill@{hit}").code == KILLED
        assert kills == len(STEPS)
        # A page failed, and that is said.
        assert rig.run(*add).code == 3
        listed = rig.call("ls", "--limit", 0, "--json").json["docs"]
        assert sorted(row["source"] for row in listed) == sorted(wanted)
        assert {row["version"] for row in listed} == {1}
        assert not any("hidden" in path for path in site.asked())
        pages = [path for path in site.asked() if path != "/fails"]
        assert len(pages) - len(set(pages)) <= kills * LOST_MAX
        site.forget()
        del site.routes["/fails"]
        site.pages["/fails"] = DocPage("Mended", text_of("mended"))
        rig.drain()
        assert rig.run("sync-all", "--interval-min", 0).code == 0
        assert len(site.asked()) == len(set(site.asked()))
        rig.drain()
        rig.check()


def docs_count(rig: Rig) -> int:
    return len(rig.call("ls", "--limit", 0, "--json").json["docs"])


def test_a_killed_removal_is_made_up_for(tmp_path: Path) -> None:
    """Docs of vanished pages go once, and a page that comes back brings its doc back."""
    with serving() as server:
        site = DocSite(server)
        site.fill(30)
        rig = Rig(tmp_path, cfg=(*CFG, 'fetch.allow=["127.0.0.1"]'))
        assert rig.run("add", "--crawl", site.url("/")).code == 0
        path = "/chapter-0/page-0.html"
        leaf = site.pages.pop(path)
        sync = ("sync-all", "--interval-min", 0)
        for armed in ("sync.before_remove=kill", "sync.before_give_back=kill"):
            assert rig.run(*sync, armed=armed).code == KILLED
        assert rig.run(*sync).code == 0
        assert docs_count(rig) == 29
        site.pages[path] = leaf
        site.edit("/chapter-0/", "anew")
        assert rig.run(*sync).code == 0
        assert docs_count(rig) == 30
        rig.check()

"""What a site of 2,000 pages costs, and what 20 kills cost it: `make bench-crawl DATA=folder`.

The pages say what stands in the text files below the folder. Among them are redirects, traps, a
slow and a failing page, pages that robots.txt forbids, and some that say what others say.
"""

import json
import os
import random
import re
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from crash_rig import CFG, Rig, ended
from doc_site import DocPage, DocSite, text_of
from loopback import Answer, Handler, moved, reply, serving

PAGES: Final = 2_000
KILLS: Final = 20
EDITS: Final = 30
VANISHED: Final = 25
_PIECE_CHARS: Final = 1_200
_SLOW_S: Final = 3.0
_ENDINGS: Final = ("html", "md", "txt", "tex")
_MARKUP: Final = re.compile(r"<[^>]{0,2000}>|[<>&]")


def pieces(folder: Path, count: int) -> list[str]:
    """Pieces of real texts, from the start again where there are too few."""
    texts = []
    for path in sorted(path for end in _ENDINGS for path in folder.rglob(f"*.{end}")):
        data = path.read_bytes()
        if b"\0" in data:
            # Of an encoding that a page in UTF-8 cannot hold.
            continue
        text = " ".join(_MARKUP.sub(" ", data.decode("utf-8", "replace")).split())
        texts += [text[at : at + _PIECE_CHARS] for at in range(0, len(text), _PIECE_CHARS)]
    if not texts:
        raise SystemExit(f"no texts below {folder}")
    return [texts[number % len(texts)] for number in range(count)]


def built(site: DocSite, folder: Path) -> set[str]:
    """Fill the site; the addresses of the pages that are to be docs."""
    site.fill(PAGES, texts=pieces(folder, PAGES))
    wanted = {site.url(path) for path in site.pages}
    site.traps = True
    site.robots = "User-agent: *\nDisallow: /hidden/\nDisallow: /calendar/\n"
    for number in range(20):
        site.pages[f"/hidden/{number}"] = DocPage("Hidden", text_of(f"hidden {number}"))
        site.routes[f"/old-{number}"] = moved(f"/chapter-{number}/", 301)
        copied = site.pages[f"/chapter-{number}/"]
        site.pages[f"/copy-{number}"] = DocPage(copied.title, copied.words, copied.links)
    corners = [f"/hidden/{n}" for n in range(20)] + [f"/old-{n}" for n in range(20)]
    copies = tuple(f"/copy-{n}" for n in range(20))
    site.routes["/fails"] = Answer(b"", 500)
    slow = DocPage("Slow", text_of("slow"))
    site.routes["/slow"] = lambda handler: _slowly(handler, slow)
    site.pages["/"].links += (*corners, *copies, "/fails", "/slow")
    return wanted | {site.url("/slow")}


def _slowly(handler: Handler, page: DocPage) -> None:
    time.sleep(_SLOW_S)
    reply(handler, Answer(page.body(()), 200, {"Content-Type": page.mime, "ETag": '"slow"'}))


def crawl(rig: Rig, site: DocSite, rng: random.Random) -> None:
    """The same command, killed KILLS times at random requests, then to its end."""
    add = ("add", "--crawl", site.url("/"), "--no-wait", "--json")
    share = PAGES // (KILLS + 1)
    for _ in range(KILLS):
        begun = len(site.server.requests)
        limit = begun + rng.randint(share // 2, share)
        with rig.start(*add) as process:
            while process.poll() is None and len(site.server.requests) < limit:
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
            process.communicate()
    with rig.start(*add) as process:
        last = ended(process, wait_s=1_200)
    print(f"  last run: exit {last.code}, {counts(last.out)}")


def counts(out: str) -> str:
    """The figures of a report."""
    said = json.loads(out)
    report = said["sources"][0] if "sources" in said else said
    names = ("added", "updated", "unchanged", "removed", "skipped", "failed")
    return ", ".join(f"{report[name]:,} {name}" for name in names if report.get(name))


def docs(rig: Rig) -> list[str]:
    """The addresses of the active docs."""
    with rig.start("ls", "--limit", 0, "--json") as process:
        return [row["source"] for row in json.loads(ended(process).out)["docs"]]


def sync(rig: Rig, site: DocSite, said: str) -> None:
    """One sync, and what it asked for."""
    site.forget()
    began_s = time.monotonic()
    with rig.start("sync-all", "--interval-min", 0, "--json") as process:
        done = ended(process, wait_s=1_200)
    asked = site.asked()
    print(
        f"{said}: {len(asked):,} page requests, {len(asked) - len(set(asked)):,} of them twice, "
        f"{time.monotonic() - began_s:.1f} s; {counts(done.out)}"
    )


def main(folder: Path) -> None:
    rng = random.Random(20)
    with tempfile.TemporaryDirectory() as root, serving() as server:
        os.environ["XDG_DATA_HOME"] = f"{root}/data"
        site = DocSite(server)
        wanted = built(site, folder)
        rig = Rig(Path(root), cfg=(*CFG, 'fetch.allow=["127.0.0.1"]'))
        began_s = time.monotonic()
        crawl(rig, site, rng)
        asked, taken = site.asked(), docs(rig)
        twice = len(asked) - len(set(asked))
        says_same = {site.url(f"/copy-{n}") for n in range(20)}
        print(f"pages: {len(wanted):,} that are to be docs; {KILLS} kills")
        print(
            f"docs: {len(taken):,}, doubles {len(taken) - len(set(taken))}, "
            f"lost {missing(wanted, taken, says_same, site)}, {time.monotonic() - began_s:.0f} s"
        )
        print(f"requests: {len(asked):,}, {twice:,} of them again after a kill")
        print(f"forbidden pages asked for: {sum('/hidden/' in path for path in asked)}")
        del site.routes["/fails"]
        site.pages["/fails"] = DocPage("Mended", text_of("mended"))
        sync(rig, site, "second sync, by ETag")
        site.sitemap = True
        sync(rig, site, "sync that first sees a sitemap")
        sync(rig, site, "sync with an unchanged sitemap")
        leaves = [path for path in site.pages if "page-" in path]
        for path in rng.sample(leaves, EDITS):
            site.edit(path, "edited")
        for path in rng.sample([path for path in leaves if not site.pages[path].changes], VANISHED):
            del site.pages[path]
        sync(rig, site, f"sync after {EDITS} edits, with {VANISHED} pages gone")
        print(f"docs at the end: {len(docs(rig)):,}")


def missing(wanted: set[str], taken: list[str], says_same: set[str], site: DocSite) -> int:
    """How many pages have no doc, nor one that says the same."""
    lost = wanted - set(taken)
    stood_in = says_same & set(taken)
    words = {words_of(site, url) for url in stood_in}
    return sum(words_of(site, url) not in words for url in lost)


def words_of(site: DocSite, url: str) -> str:
    page = site.pages.get(url.removeprefix(site.url("")))
    return page.words if page else url


if __name__ == "__main__":
    main(Path(sys.argv[1]))

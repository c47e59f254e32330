"""Show what kb does: take examples/ in, ask six questions, print what is found.

    python scripts/demo.py

Works in a home of its own under the temporary folder and needs no network. Every command below is
the real one in a process of its own. Ends with 1 if a command fails, or where a question does not
find the file, or the page, that it should find first.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
EXAMPLES: Final = ROOT / "examples"


class Question(NamedTuple):
    """What is asked, what it shows, and the file, with its page, that must come first."""

    query: str
    shows: str
    file: str
    page: int | None = None


QUESTIONS: Final = (
    Question("is a pet allowed", "by meaning: the lease says cat and dog", "house/lease.html"),
    Question("F28", "by the very word, from a table", "house/boiler.md"),
    Question(
        "which form do I need for the grant",
        "in a PDF, with its page",
        "house/energy-survey.pdf",
        page=2,
    ),
    Question("红烧肉要炖多久", "in Chinese, by words alone", "kitchen/hongshaorou.md"),
    Question("where is 伊利 on offer", "two scripts in one note", "kitchen/shopping.md"),
    Question("外婆家坐高铁怎么走", "in a file written as GB18030", "travel/waipo.txt"),
)

FORMATS: Final = {
    "rules.docx": "in which month is a bonfire lit",
    "tenants.xlsx": "Lindqvist rent plot",
    "grafting.pptx": "cut the scion",
    "compost.odt": "when is the compost heap turned",
    "water.ods": "rhubarb pump litres",
    "hedgehogs.odp": "gap in the fence for hedgehogs",
    "bees.epub": "catching a swarm in the plum tree",
    "seeds.xls": "scorzonera grams",
    "shed-key.msg": "where is the key to the tool shed",
    "plan.png": "the drain below the plots",
    "scarecrow.tif": "Harrowby scarecrow",
    "tools.csv": "billhook",
    "slugs.tsv": "nematodes against slugs",
    "frost.org": "dahlias before frost",
    "paths.rst": "walnut wood chips",
    "bylaws.adoc": "how deep is a pond",
    "soil.tex": "pH for blueberries",
    "invitation.rtf": "harvest supper lantern",
    "sensors.json": "greenhouse louvre opens",
    "log.jsonl": "robin in the watering can",
    "rota.yaml": "who opens the gate",
    "irrigation.toml": "raspberries drip minutes",
    "pruning.srt": "currants last year's wood",
    "mulch.vtt": "straw below strawberries",
    "meetings.ics": "seed swap chapel hall",
    "yields.ipynb": "runner beans plot 12",
    "badgers.eml": "badgers sweetcorn",
    "list.mbox": "wheelbarrow with the solid tyre",
    "moon.py": "is_waxing",
    "track 07.mp3": "kind:audio blackbird",
    "gate-code.enex": "padlock graphite",
    "frogs.jex": "spawn lower pond hatches",
    "lapwing.fb2": "lapwings furrows",
    "plumber.vcf": "Okafor mends the standpipe",
    "feeds.opml": "heritage potato growers",
    "bookmarks.html": "hailstorm radar",
    "newts.mhtml": "newts folded leaf",
    "walls.webarchive": "through-stone dry stone wall",
    "seed-exchange.url": "heirloom-seeds exchange.example",
    "nightingale-map.webloc": "nightingale map",
    "rotation.canvas": "legumes before brassicas",
    "pergola.excalidraw": "wisteria pergola",
    "pump.drawio": "leather washer",
    "signpost.svg": "Withybrook Ford",
    "minutes.fodt": "keeper of the lawnmower",
    "owls.mobi": "barn owl loft",
    "rain.vsdx": "rain barrel overflow",
    "meadow.bib": "yellow rattle hay meadow",
    "hives.ris": "straw skep rye cluster dry",
}
"""By file of examples/formats: a question that it comes first for."""


def kb_command() -> str:
    """The `kb` that was installed with this Python."""
    beside = Path(sys.executable).with_name("kb")
    if not beside.exists():
        sys.exit(f"there is no {beside}; run `make setup`")
    return str(beside)


def run(environment: dict[str, str], *arguments: str, quiet: bool = False) -> str:
    """Print a command as it would be typed and what it says; returns its standard output."""
    if not quiet:
        print(f"$ kb {shlex.join(arguments)}", flush=True)
    done = subprocess.run(
        [kb_command(), *arguments],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if quiet else subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    if not quiet:
        print(f"{done.stdout.rstrip()}\n", flush=True)
    if done.returncode:
        sys.exit(f"kb {shlex.join(arguments)} ended with {done.returncode}, not 0")
    return done.stdout


def is_answered(found: dict[str, Any], question: Question) -> bool:
    """Whether the first of the hits is the expected one; `found` is what `--json` printed."""
    first = found["hits"][0] if found["hits"] else {"source": "", "page": None}
    return bool(first["source"] == str(EXAMPLES / question.file) and first["page"] == question.page)


def demonstrate(folder: str) -> list[str]:
    """Take the examples in and ask; returns a line for each question that was missed."""
    # Neither the user's settings nor the user's home have a say here.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KB_")}
    environment |= {"KB_HOME": f"{folder}/home", "XDG_CONFIG_HOME": folder, "COLUMNS": "96"}
    # The library reads this process's own.
    os.environ.clear()
    os.environ.update(environment)
    run(environment, "add", "examples")
    missed: list[str] = []
    for question in QUESTIONS:
        print(f"# {question.shows}")
        run(environment, "search", "-k", "1", question.query)
        found = run(environment, "search", "--json", "-k", "1", question.query, quiet=True)
        if not is_answered(json.loads(found), question):
            missed.append(f"{question.query}: {question.file} did not come first")
    missed += of_each_format(environment["KB_HOME"])
    run(environment, "stats")
    return missed


def of_each_format(home: str) -> list[str]:
    """Ask what each file of examples/formats knows, by the library; a line for each missed."""
    import kb

    print("# one file of each format")
    missed: list[str] = []
    with kb.open(home) as library:
        for file, query in FORMATS.items():
            hits = library.search(query, k=1).hits
            first = Path(hits[0].source.partition("#")[0]).name if hits else "nothing"
            print(f"{file:17} {query}")
            if first != file:
                missed.append(f"{query}: {first} came first, not {file}")
    print()
    return missed


def main() -> None:
    """Show everything, say how long it took."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="kb-demo-") as folder:
        missed = demonstrate(folder)
    asked = len(QUESTIONS) + len(FORMATS)
    print(f"{asked - len(missed)} of {asked} found; {time.perf_counter() - began:.1f} s in all")
    if missed:
        sys.exit("\n".join(missed))


if __name__ == "__main__":
    main()

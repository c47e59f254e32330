"""Make the picture of a terminal that the README shows, from examples/.

    python scripts/terminal_picture.py

Runs the real command in a home of its own under the temporary folder, and needs no network.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

ROOT: Final = Path(__file__).resolve().parent.parent
PICTURE: Final = ROOT / "docs" / "screenshots" / "terminal.svg"
COLUMNS: Final = 90
COMMANDS: Final = (
    ("add", "papers"),
    ("search", "-k", "1", "is a pet allowed"),
    ("search", "-k", "1", "which form do I need for the grant"),
)
# Not every machine has the fonts for Chinese.
NOT_SHOWN: Final = shutil.ignore_patterns("hongshaorou.md", "shopping.md", "waipo.txt", "systemd")


def main() -> None:
    """Run the commands and draw what they print."""
    kb = Path(sys.executable).with_name("kb")
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"))  # noqa: SIM115
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples", Path(folder, "papers"), ignore=NOT_SHOWN)
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("KB_")},
            "KB_HOME": str(Path(folder, "home")),
            "COLUMNS": str(COLUMNS - 2),
        }
        for words in COMMANDS:
            shown = " ".join(f'"{word}"' if " " in word else word for word in words)
            console.print(Text.assemble(("$ ", "green"), (f"kb {shown}", "bold")))
            done = subprocess.run(
                [kb, *words],
                cwd=folder,
                env=environment,
                capture_output=True,
                encoding="utf-8",
                check=True,
            )
            console.print(
                Text(done.stdout.rstrip().replace(folder, "/home/ada") + "\n"), soft_wrap=True
            )
    svg = console.export_svg(title="kb", unique_id="kb")
    # The fonts of the reader's own machine: the picture asks no server for one.
    lines = [line for line in svg.splitlines() if "cdnjs" not in line]
    lines = [line.rstrip() for line in lines]
    lines = [line[:-1] + ";" if line.endswith('"),') else line for line in lines]
    PICTURE.write_text("\n".join(lines) + "\n", "utf-8")
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

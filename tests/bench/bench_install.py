"""How much does a default install take?

    python tests/bench/bench_install.py [--max 400]

Builds a wheel of this checkout, installs it with pip in a fresh environment of this Python, and
prints what its site-packages take on disk (`du -sm`, in MiB), pip among them, and the largest
parts. Ends with 1 if that is more than the maximum.
"""

import argparse
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PARTS: Final = 10


def on_disk(*options: str, of: list[Path]) -> list[tuple[int, str]]:
    """What `du` says of each path: a size, and the path's name."""
    command = ("du", *options, "--", *map(str, of))
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    pairs = (line.split("\t", 1) for line in lines)
    return [(int(size), Path(path).name) for size, path in pairs]


def main() -> int:
    """Build, install, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--max", type=int, default=400, dest="max_mib", help="MiB at most")
    options = parser.parse_args()
    pip = ("-m", "pip", "--quiet", "--disable-pip-version-check")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        building = (sys.executable, *pip, "wheel", "--no-deps", "-w", temporary, str(ROOT))
        subprocess.run(building, check=True)
        (wheel,) = folder.glob("*.whl")
        venv.create(folder / "fresh", with_pip=True)
        python = folder / "fresh" / "bin" / "python"
        subprocess.run((str(python), *pip, "install", str(wheel)), check=True)
        (packages,) = (folder / "fresh" / "lib").glob("python3*/site-packages")
        ((total_mib, _),) = on_disk("-sm", of=[packages])
        parts = sorted(on_disk("-sk", of=sorted(packages.iterdir())), reverse=True)
    print(f"{total_mib} MiB, of {options.max_mib} at most. The largest parts:")
    for kib, name in parts[:PARTS]:
        print(f"{kib / 1024:7.1f}  {name}")
    return int(total_mib > options.max_mib)


if __name__ == "__main__":
    sys.exit(main())

"""The shell examples of the README and the tutorial, run as a reader would type them."""

from pathlib import Path
from typing import Final

import pytest
from doc_examples import ROOT, Shell, blocks, fits, masked

# Page -> how many commands of it run at least.
PAGES: Final = {"README.md": 8, "docs/tutorial.md": 33, "docs/how-to/obsidian-vault.md": 5}
# Its exit code is 3 where the machine deserves a look.
_MAY_FAIL: Final = ("kb doctor",)


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_is_what_its_commands_print(page: str, tmp_path: Path) -> None:
    """Every command of a page succeeds in a fresh home, one after another, and prints its lines."""
    shell = Shell(tmp_path)
    ran = 0
    for block in blocks(ROOT / page):
        if block.reason is not None:
            continue
        for command, shown in block.examples:
            code, printed = shell.run(command)
            assert code == 0 or command in _MAY_FAIL, f"{command}\n{printed}"
            assert fits(shown, printed), f"{command}\n{masked(shown)}\n---\n{masked(printed)}"
            ran += 1
    assert ran >= PAGES[page]


@pytest.mark.parametrize("page", PAGES)
def test_what_is_not_run_has_a_reason(page: str) -> None:
    """A block that is left out says why."""
    reasons = [block.reason for block in blocks(ROOT / page) if block.reason is not None]
    assert all(len(reason.split()) >= 3 for reason in reasons)
    assert (ROOT / page).read_text("utf-8").count("<!-- not run") == len(reasons)


def test_an_example_that_shows_something_else_does_not_fit() -> None:
    """Ids, times and scores may differ, and nothing else."""
    shown = " 1. 1.000  Boiler\n    /home/ada/a.md:1  d92453340"
    assert fits(shown, " 1. 0.512  Boiler\n    /home/ada/a.md:1  dffffffff")
    assert not fits(shown, " 1. 1.000  Boiler\n    /home/ada/b.md:1  d92453340")
    assert not fits("", "kb: nothing found")
    assert fits("…\nall is well", "4 docs\nall is well")
    assert not fits("…\nall is well", "4 docs\none thing is wrong")

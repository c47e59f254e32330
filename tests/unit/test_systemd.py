"""The units in examples/systemd/ start commands that are there, by options that these have."""

import importlib
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from kb_cli.main import COMMANDS
from kb_cli.main import kb as group

FOLDER = Path(__file__).resolve().parents[2] / "examples/systemd"
UNITS = sorted(FOLDER.iterdir())
SERVICES = [unit for unit in UNITS if unit.suffix == ".service"]
TIMEOUT_S = 120


def settings(unit: Path) -> list[tuple[str, str]]:
    """Key and value of each line that has them."""
    return re.findall(r"(?m)^(\w+)=(.*)$", unit.read_text())


def started(unit: Path) -> list[str]:
    (command,) = [value for key, value in settings(unit) if key == "ExecStart"]
    return shlex.split(command)


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.name)
def test_what_is_started_can_be_called_so(unit: Path) -> None:
    """Command and options are parsed as the command line parses them."""
    program, *argv = started(unit)
    assert program.endswith("/kb")
    with group.make_context("kb", argv) as context:
        rest = [*context._protected_args, *context.args]
        assert rest[0] in COMMANDS
        command: click.Command = importlib.import_module(
            f"kb_cli.{rest[0].replace('-', '_')}"
        ).command
        command.make_context(rest[0], rest[1:]).close()


def test_both_servers_are_the_same_command() -> None:
    """The hardened unit adds bounds, and takes nothing from the plain one."""
    plain, hardened = (set(settings(FOLDER / f"{name}.service")) for name in ("kb", "kb-hardened"))
    assert plain < hardened


def test_the_server_ends_before_it_is_killed() -> None:
    """It is waited for longer than the ten seconds that the server may take."""
    for name in ("kb", "kb-hardened"):
        assert int(dict(settings(FOLDER / f"{name}.service"))["TimeoutStopSec"]) > 10


def test_the_timer_has_its_service() -> None:
    """A timer starts the service of its own name."""
    assert (FOLDER / "kb-sync.timer").exists()
    assert (FOLDER / "kb-sync.service").exists()


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_takes_them(tmp_path: Path) -> None:
    """No setting is unknown or wrong where the program is this one."""
    program = str(Path(sys.executable).with_name("kb"))
    for unit in UNITS:
        said = unit.read_text().replace("/opt/kb/bin/kb", program)
        (tmp_path / unit.name).write_text(re.sub(r"(?m)^User=.*$", "User=root", said))
    files = [str(tmp_path / unit.name) for unit in UNITS]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *files],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    ours = [line for line in done.stderr.splitlines() if str(tmp_path) in line or "kb" in line]
    assert ours == []

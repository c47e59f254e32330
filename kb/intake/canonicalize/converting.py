"""Who reads DjVu, and what Word and PowerPoint wrote before 2007? A program of this machine.

LibreOffice makes docx and pptx of them; antiword, catdoc, catppt and djvutxt make text. Each has
limits. What comes back is read in the child as any other file is.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from kb.errors import Unparsable, Unsupported
from kb.intake.canonicalize.dispatch import CanonicalizeInput
from kb.intake.canonicalize.legacy import DJVU, DJVU_START, DOC, OLE, PPT
from kb.model.children import module_env

_WALL_S_MAX: Final = 180
_OUTPUT_BYTES_MAX: Final = 256 << 20
_ENV_KEPT: Final = ("PATH", "LD_LIBRARY_PATH")
# Port 9 discards what comes: a document that names an address gets nothing from it.
_NOWHERE: Final = "http://127.0.0.1:9"
_ENV_FIXED: Final = {"LC_ALL": "C.UTF-8", "http_proxy": _NOWHERE, "https_proxy": _NOWHERE}
# The shell lowers its own limits and becomes the program. Not every system can limit memory.
_LIMITED: Final = (
    'ulimit -c 0; ulimit -t "$1"; ulimit -f "$2"; ulimit -v "$3" 2>/dev/null; shift 3; exec "$@"'
)
_PROFILE: Final = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Common/Security/Scripting">
<prop oor:name="BlockUntrustedRefererLinks" oor:op="fuse"><value>true</value></prop>
<prop oor:name="DisableMacrosExecution" oor:op="fuse"><value>true</value></prop>
<prop oor:name="MacroSecurityLevel" oor:op="fuse"><value>3</value></prop>
</item>
</oor:items>
"""


class _OfficeProgram(Struct, frozen=True, kw_only=True):
    """A program, and how it is asked."""

    programs: tuple[str, ...]
    """What it is called on one system or another."""
    argv: Callable[[Path, Path], tuple[str, ...]]
    """Its words for a file and for a folder of its own."""
    result: str = ""
    """The name of the file that it makes; empty where it prints a text."""
    opens: bytes = b""
    """How a file must begin: catdoc prints as text whatever it does not know."""
    cpu_s_max: int = 20
    memory_bytes_max: int = 1 << 30


class _OldFormat(Struct, frozen=True, kw_only=True):
    ending: str
    converters: tuple[_OfficeProgram, ...]
    """The best one first."""
    advice: str
    instead: str
    """What a person can do where no program can read it."""


def _office(ending: str) -> _OfficeProgram:
    return _OfficeProgram(
        programs=("soffice", "libreoffice"),
        argv=lambda file, folder: (
            f"-env:UserInstallation={(folder / 'profile').as_uri()}",
            *("--headless", "--norestore", "--nologo", "--nodefault", "--nolockcheck"),
            *("--convert-to", ending, "--outdir", str(folder / "out"), str(file)),
        ),
        result=f"out/in.{ending}",
        cpu_s_max=90,
        memory_bytes_max=8 << 30,
    )


_FORMATS: Final = {
    DOC: _OldFormat(
        ending="doc",
        converters=(
            _office("docx"),
            _OfficeProgram(
                programs=("antiword",),
                argv=lambda file, _: ("-m", "UTF-8.txt", "-w", "0", str(file)),
            ),
            # antiword refuses the shortest documents. catdoc prints the codes of fields, too.
            _OfficeProgram(
                programs=("catdoc",),
                argv=lambda file, _: ("-d", "utf-8", "-w", str(file)),
                opens=OLE,
            ),
        ),
        advice="LibreOffice, antiword or catdoc reads it, and none is installed: "
        "apt install antiword catdoc",
        instead="save it as docx",
    ),
    PPT: _OldFormat(
        ending="ppt",
        converters=(
            _office("pptx"),
            _OfficeProgram(programs=("catppt",), argv=lambda file, _: ("-d", "utf-8", str(file))),
        ),
        advice="LibreOffice or catppt reads it, and neither is installed: apt install catdoc",
        instead="save it as pptx",
    ),
    DJVU: _OldFormat(
        ending="djvu",
        converters=(
            _OfficeProgram(
                programs=("djvutxt",), argv=lambda file, _: (str(file),), opens=DJVU_START
            ),
        ),
        advice="djvutxt reads it, and is not installed: apt install djvulibre-bin",
        instead="it may have no text: convert it to PDF, whose pages kb can recognize",
    ),
}


def converted(source: CanonicalizeInput) -> CanonicalizeInput:
    """The source as a program of this machine converts it; a source of another format as it is.

    Raises:
        Unsupported: no such program is installed; says which ones there are.
        Unparsable: it could not be converted within the limits.
    """
    wanted = _FORMATS.get(source.mime)
    if wanted is None or not source.data:
        return source
    there = [
        (found, converter)
        for converter in wanted.converters
        if source.data.startswith(converter.opens) and (found := _installed(converter.programs))
    ]
    if not there:
        raise Unsupported(wanted.advice, source=source.name)
    detail = ""
    for program, converter in there:
        with tempfile.TemporaryDirectory(prefix="kb-convert-") as name:
            folder = Path(name)
            file = folder / f"in.{wanted.ending}"
            file.write_bytes(source.data)
            try:
                data = _run(program, converter, file, folder)
            except _NotConverted as error:
                detail = str(error)
                continue
        return msgspec.structs.replace(source, data=data)
    raise Unparsable(f"{detail}; {wanted.instead}", source=source.name)


class _NotConverted(Exception):
    """A program failed; says how."""


def _installed(programs: tuple[str, ...]) -> str | None:
    found = filter(None, map(shutil.which, programs))
    return next((os.path.abspath(program) for program in found), None)


def _run(program: str, converter: _OfficeProgram, file: Path, folder: Path) -> bytes:
    """What the program makes of a file. Raises _NotConverted."""
    profile = folder / "profile" / "user"
    profile.mkdir(parents=True)
    (profile / "registrymodifications.xcu").write_text(_PROFILE)
    sizes = (_OUTPUT_BYTES_MAX // 512, converter.memory_bytes_max // 1024)
    limits = (str(converter.cpu_s_max), *map(str, sizes))
    argv = ("/bin/sh", "-c", _LIMITED, "sh", *limits, program, *converter.argv(file, folder))
    base = os.path.basename(program)
    printed = folder / "printed"
    with printed.open("wb") as out:
        # A file, not a pipe: its size has a limit, too.
        running = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=module_env(_ENV_KEPT, **_ENV_FIXED, HOME=str(folder), TMPDIR=str(folder)),
            start_new_session=True,
        )
        try:
            status = running.wait(_WALL_S_MAX)
        except subprocess.TimeoutExpired:
            raise _NotConverted(f"{base} took too long") from None
        finally:
            # LibreOffice starts others, which end with it.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(running.pid, signal.SIGKILL)
            running.wait()
    made = folder / converter.result if converter.result else printed
    data = made.read_bytes() if made.is_file() and not made.is_symlink() else b""
    if status or not data.strip():
        raise _NotConverted(f"{base} could not read it (status {status})")
    return data

"""What does a picture say? Asked of the program `tesseract`, which runs with limits."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from kb.errors import Unparsable, Unsupported
from kb.model.children import module_env

PROGRAM: Final = "tesseract"
LANGUAGES: Final = ("eng",)
"""Read where no setting says which."""
TEXT_BYTES_MAX: Final = 4 << 20
# A machine that is busy with other things gives a picture so much more time by the clock.
_WALL_SHARE: Final = 20
_ENV_KEPT: Final = ("PATH", "LD_LIBRARY_PATH", "TESSDATA_PREFIX")
_ENV_FIXED: Final = {"OMP_THREAD_LIMIT": "1", "LC_ALL": "C"}
_NO_LANGUAGE: Final = b"Failed loading language"
# The shell lowers its own limits and becomes the program. Not every system can limit memory.
_LIMITED: Final = 'ulimit -c 0; ulimit -t "$1"; ulimit -v "$2" 2>/dev/null; shift 2; exec "$@"'


class Tesseract(Struct, frozen=True, kw_only=True):
    """The program, and how it is run."""

    program: str
    languages: tuple[str, ...] = LANGUAGES
    """As tesseract names them; each has to be installed."""
    cpu_s_max: int = 30
    """Processor time for one picture."""
    memory_bytes_max: int = 2 << 30

    @property
    def fingerprint(self) -> str:
        """Names what reads, so that another choice of languages reads again."""
        return f"tesseract:{'+'.join(self.languages)}"

    def read(self, image: bytes, name: str) -> str:
        """The text of a picture of any format that tesseract reads; empty if it finds none.

        Raises:
            Unparsable: it is no picture, or takes more than its limits.
            Unsupported: a language is not installed.
        """
        limits = (str(self.cpu_s_max), str(self.memory_bytes_max // 1024))
        languages = ("-l", "+".join(self.languages)) if self.languages else ()
        argv = ("/bin/sh", "-c", _LIMITED, "sh", *limits, self.program, "stdin", "stdout")
        try:
            done = subprocess.run(
                (*argv, *languages),
                input=image,
                env=module_env(_ENV_KEPT, **_ENV_FIXED),
                capture_output=True,
                timeout=_WALL_SHARE * self.cpu_s_max,
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Unparsable("tesseract took too long for a picture", source=name) from None
        except OSError as error:
            detail = f"tesseract could not be started ({error.strerror})"
            raise Unparsable(detail, source=name) from None
        if done.returncode:
            reason = _reason(done.returncode, done.stderr)
            lacks_language = _NO_LANGUAGE in done.stderr
            raise (Unsupported if lacks_language else Unparsable)(reason, source=name)
        # Imported late: whether it is installed is asked by every add.
        from kb.intake.canonicalize.decode import clean_text

        text = clean_text(done.stdout[:TEXT_BYTES_MAX].decode("utf-8", "replace"))
        lines = [line.rstrip() for line in text.split("\n")]
        return "\n".join(lines).strip("\n") if any(map(str.isalnum, text)) else ""


def installed(
    languages: Sequence[str], *, cpu_s_max: int, memory_bytes_max: int
) -> Tesseract | None:
    """The program on the PATH; None where it is not installed."""
    program = shutil.which(PROGRAM)
    if program is None:
        return None
    return Tesseract(
        program=os.path.abspath(program),
        languages=tuple(languages) or LANGUAGES,
        cpu_s_max=cpu_s_max,
        memory_bytes_max=memory_bytes_max,
    )


def _reason(status: int, errors: bytes) -> str:
    """How it ended, in its own words where it has some."""
    from kb.intake.canonicalize.decode import clean_text

    said = clean_text(errors[-2_000:].decode("utf-8", "replace")).split("\n")
    lines = [line.strip() for line in said if line.strip()]
    wrong = next((line for line in lines if "language" in line or "rror" in line), "")
    return f"tesseract ended with status {status}" + (f": {wrong[:200]}" if wrong else "")

"""Who reads what may be hostile? A child with bounds, started when first needed.

A bad document may cost its own reading, never the caller's process: see
docs/adr/0007-parsers-in-a-child.md.
"""

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

import msgspec

from kb.errors import SourceError, Unparsable
from kb.intake.canonicalize.child_protocol import (
    PageDrawn,
    ParseFailure,
    ParseSuccess,
    Question,
    Reply,
    decode_reply,
    encode,
)
from kb.intake.canonicalize.dispatch import (
    CanonicalizeInput,
    PictureInput,
    canonicalize,
    has_fallback,
    is_risky,
)
from kb.intake.canonicalize.process import (
    ChildGarbled,
    ChildGone,
    ChildIdle,
    ChildProcess,
    ChildSpent,
)
from kb.model.children import module_argv, module_env
from kb.model.text import Canonical

MEMORY_BYTES_MAX: Final = 2 * 1024**3
CPU_S_MAX: Final = 30.0
DOCS_PER_CHILD_MAX: Final = 500
_RSS_SHARE_MAX: Final = 0.25

_INSTEAD = "convert it to markdown or plain text and add the result"
_SECOND: Final = "read by another reader, since its own one failed"
# All the child is told of its surroundings: nothing secret, nothing that changes what it reads.
_ENV_KEPT: Final = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME", "VIRTUAL_ENV")
_ENV_FIXED: Final = {"TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0"}


class Parser:
    """Reads sources; HTML, PDF and formats of plugins in a child.

    The child has bounds on memory, processor time and open files.

    One child serves one document at a time; calls from several threads wait for each other.
    Used as a context manager, or closed by `close`.
    """

    def __init__(
        self,
        *,
        memory_bytes_max: int = MEMORY_BYTES_MAX,
        cpu_s_max: float = CPU_S_MAX,
        docs_per_child_max: int = DOCS_PER_CHILD_MAX,
        argv: Sequence[str] | None = None,
    ) -> None:
        """Set the bounds; nothing is started yet. `argv` names another program for the child."""
        self._memory_bytes_max = memory_bytes_max
        self._cpu_s_max = cpu_s_max
        self._docs_per_child_max = docs_per_child_max
        self._argv = tuple(argv) if argv else _child_argv(memory_bytes_max, cpu_s_max)
        self._lock = threading.Lock()
        self._child: ChildProcess | None = None
        self._docs_read = 0
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def child_pid(self) -> int | None:
        """The child's process id, None while there is none."""
        child = self._child
        return child.pid if child is not None else None

    def parse(self, source: CanonicalizeInput) -> Canonical:
        """Read the source.

        Raises:
            SourceError: as `canonicalize` does, and Unparsable where the child ran out of time
                or memory, crashed, or could not be started; the next source gets a new child.
            ValueError: the parser is closed.
        """
        if not source.data or not is_risky(source.mime):
            return canonicalize(source)
        # Imported late: most calls find that nothing has changed, and read no file.
        from kb.intake.canonicalize.converting import converted

        source = converted(source)
        with self._lock:
            try:
                reply = self._ask(source)
            except Unparsable as error:
                reply = self._ask_again(source, error)
        if isinstance(reply, ParseSuccess):
            return reply.canonical
        raise _error_of(reply, source.name)

    def page_picture(self, data: bytes, name: str, page: int) -> bytes:
        """A page of a PDF, from 0 on, as a grey picture that a child draws; raises as `parse`."""
        with self._lock:
            reply = self._ask(PictureInput(data=data, name=name, page=page))
        if isinstance(reply, PageDrawn):
            return reply.picture
        raise _error_of(reply, name)

    def close(self) -> None:
        """End the child, also one that another thread waits for; bounded, repeatable."""
        self._is_closed = True
        child = self._child
        if child is not None:
            child.kill()
        with self._lock:
            self._drop_child()

    def _ask_again(self, source: CanonicalizeInput, error: Unparsable) -> Reply:
        """Have the fallback of the format read what brought a child down, in a new child.

        Raises the first error if there is no fallback, or if it does no better.
        """
        if self._is_closed or not has_fallback(source.mime):
            raise error
        try:
            reply = self._ask(msgspec.structs.replace(source, is_second=True))
        except Unparsable:
            raise error from None
        if not isinstance(reply, ParseSuccess):
            raise error
        canonical = reply.canonical
        warnings = (*canonical.warnings, _SECOND)
        read = msgspec.structs.replace(canonical, warnings=warnings)
        return msgspec.structs.replace(reply, canonical=read)

    def _ask(self, source: Question) -> Reply:
        is_answered = False
        try:
            child = self._running_child()
            reply = decode_reply(child.ask(encode(source), self._cpu_s_max))
            is_answered = True
        except ChildSpent:
            detail = f"it takes more than {self._cpu_s_max:g} s of processor time; {_INSTEAD}"
        except ChildIdle:
            detail = f"its reader did nothing for {self._cpu_s_max:g} s; {_INSTEAD}"
        except ChildGone as gone:
            detail = f"{gone}; {_INSTEAD}"
        except (ChildGarbled, msgspec.DecodeError):
            detail = f"its reader gave no sensible answer; {_INSTEAD}"
        except OSError as error:
            detail = f"its reader could not be started ({error.strerror}); try again"
        finally:
            # Whatever else happened, Ctrl-C included, the pipes are no longer in step.
            if not is_answered:
                self._drop_child()
        if not is_answered:
            raise Unparsable(detail, source=source.name)
        self._docs_read += 1
        if (
            self._docs_read >= self._docs_per_child_max
            or reply.rss_bytes > _RSS_SHARE_MAX * self._memory_bytes_max
        ):
            self._drop_child()
        return reply

    def _running_child(self) -> ChildProcess:
        if self._child is not None and not self._child.is_alive():
            self._drop_child()
        if self._is_closed:
            raise ValueError("the parser is closed")
        if self._child is None:
            self._child = ChildProcess(self._argv, module_env(_ENV_KEPT, **_ENV_FIXED))
            self._docs_read = 0
            if self._is_closed:
                # close() came between the check and the start, and saw no child to kill.
                raise ValueError("the parser is closed")
        return self._child

    def _drop_child(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.stop()


def _error_of(reply: Reply, name: str) -> SourceError:
    if isinstance(reply, ParseFailure):
        return reply.exception()
    return Unparsable(f"its reader gave no sensible answer; {_INSTEAD}", source=name)


def _child_argv(memory_bytes_max: int, cpu_s_max: float) -> tuple[str, ...]:
    return tuple(module_argv("kb.intake.canonicalize.child", str(memory_bytes_max), str(cpu_s_max)))

"""A server from its start to its end: one process, or a parent with several."""

import secrets
import signal
from collections.abc import Callable, Sequence
from typing import TextIO

import msgspec

from kb.home.spaces.spaces import Spaces
from kb.model.children import module_argv
from kb.model.config import ServeSettings
from kb.serve.access_log import LogFormat
from kb.serve.http_server import Ended, OnReady, answer, check_installed
from kb.serve.listening import Listening, inherited_listening, listening
from kb.serve.processes import READY, Processes, end_with, socket_of
from kb.serve.sessions import Sessions
from kb.store.trust.local_token import LocalToken

_Answer = Callable[[Listening, OnReady], Ended]


def serve(
    spaces: Spaces,
    settings: ServeSettings,
    *,
    stream: TextIO,
    form: LogFormat,
    on_ready: OnReady,
    own: LocalToken | None,
    again: Sequence[str],
    child: int | None = None,
) -> Ended:
    """Answer until SIGTERM or SIGINT; all of it has ended soon after.

    `again` are the module and the words that run this command once more. So each of several
    `settings.processes` is started, with `--child` and the descriptor that it calls this with.
    `spaces` stay open, except in the parent. Else as `http_server.answer`. Raises UsageError where
    it cannot listen, KbError without uvicorn, and ProcessFailed.
    """
    check_installed()

    def answered(place: Listening, on_ready: OnReady) -> Ended:
        app = spaces.first
        # Each process has its share of the threads that work on jobs.
        threads = len(range(place.process, app.settings.work.threads, place.processes))
        work = msgspec.structs.replace(app.settings.work, threads=threads)
        app.settings = msgspec.structs.replace(app.settings, work=work)
        return answer(spaces, settings, place, stream=stream, form=form, on_ready=on_ready, own=own)

    if child is not None:
        return _answered_as_child(child, answered)
    if own is not None:
        # It makes the folder in which `listening` says that a server of this user is here.
        own.read_or_create()
    with listening(spaces.first, settings, own) as place:
        if settings.processes == 1:
            return answered(place, on_ready)
        # Each child opens them itself.
        spaces.close()

        def tell() -> None:
            link = Sessions(secrets.token_bytes, file=place.sessions).link() if own else None
            on_ready(place.address, f"/open/{link}" if link else None)

        def command_of(descriptor: int) -> list[str]:
            return module_argv(*again, "--child", str(descriptor))

        by = Processes(place, settings.processes, command_of).run(tell)
        return Ended(by=by, is_quiet=True)


def _answered_as_child(child: int, answered: _Answer) -> Ended:
    with socket_of(child) as parent:
        place = inherited_listening(parent)
        end_with(parent)

        def tell(_address: str, _link: str | None) -> None:
            parent.send(READY)

        ended = answered(place, tell)
    # Whatever ended it, its parent knows why.
    return msgspec.structs.replace(ended, by=signal.SIGTERM)

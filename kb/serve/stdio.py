"""A server on standard input and output, for one client, which started it."""

import threading
from collections.abc import AsyncIterable, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from kb.serve.mcp import refusal_of

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectSendStream
    from mcp.server import Server
    from mcp.shared.message import SessionMessage

_END_S: Final = 0.5


class StdioServer(threading.Thread):
    """Answers on standard input and output, where nothing else may write meanwhile.

    In a thread of its own, for a read of standard input cannot be interrupted: whoever ends the
    process while `is_alive` leaves that thread behind.
    """

    def __init__(self, server: "Server[Any]", stop: threading.Event) -> None:
        """`stop` is set when the input ends, and may be set to stop before."""
        super().__init__(name="kb-mcp", daemon=True)
        self._server = server
        self._stop_event = stop
        self._fault: BaseException | None = None

    def run(self) -> None:
        """Answer until the input ends."""
        import anyio

        try:
            anyio.run(self._answer)
        except BaseException as error:  # noqa: BLE001  carried to the thread that waits
            self._fault = error
        finally:
            self._stop_event.set()

    def wait(self) -> None:
        """Return soon after the input has ended, or `stop` was set. Raises what ended it else."""
        self._stop_event.wait()
        self.join(_END_S)
        if self._fault is not None:
            raise self._fault

    async def _answer(self) -> None:
        import anyio
        from mcp.server.stdio import stdio_server

        options = self._server.create_initialization_options()
        passing, passed = anyio.create_memory_object_stream["SessionMessage | Exception"]()
        try:
            async with (
                stdio_server() as (incoming, outgoing),
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(_pass_messages, incoming, passing, outgoing.send)
                await self._server.run(passed, outgoing, options)
        except* BrokenPipeError:
            # The client left without closing our input first; that is its right.
            pass


async def _pass_messages(
    incoming: "AsyncIterable[SessionMessage | Exception]",
    passing: "MemoryObjectSendStream[SessionMessage | Exception]",
    answer: "Callable[[SessionMessage], Awaitable[None]]",
) -> None:
    """Hand on the messages, and answer each line that is none: the protocol's server drops it."""
    from mcp.shared.message import SessionMessage

    async with passing:
        async for line in incoming:
            if isinstance(line, Exception):
                await answer(SessionMessage(refusal_of(line)))
            else:
                await passing.send(line)

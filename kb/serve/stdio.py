"""A server on standard input and output, for one client, which started it."""

import threading
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mcp.server import Server

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
        from mcp.server.stdio import stdio_server

        options = self._server.create_initialization_options()
        try:
            async with stdio_server() as (incoming, outgoing):
                await self._server.run(incoming, outgoing, options)
        except* BrokenPipeError:
            # The client left without closing our input first; that is its right.
            pass

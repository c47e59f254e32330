"""`kb mcp`: the tools for an agent's program, by the Model Context Protocol."""

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Final

import click

from kb.errors import UsageError
from kb.operations.scopes import scope_of
from kb.operations.work import HURRY_S
from kb_cli.home import open_spaces
from kb_cli.output import warn
from kb_cli.words import text

if TYPE_CHECKING:
    from kb.operations.operation import Tool

_INTERRUPTED: Final = 130


@click.command(name="mcp")
@click.option(
    "--write",
    is_flag=True,
    help="Let agents add texts, pages and notes with kb_add and note_add; a worker runs meanwhile.",
)
@click.option(
    "--user",
    type=text,
    metavar="NAME",
    help="Answer as this user, who sees no private docs of others; not with --write.",
)
@click.pass_context
def command(ctx: click.Context, write: bool, user: str | None) -> None:
    """Answer an agent's program by MCP on standard input and output, until the input ends."""
    if write and user is not None:
        raise UsageError("only the person at the machine may use --write; leave out --user")
    if user is not None and not user.strip():
        raise UsageError("--user needs a name")
    from kb.serve.executor import CallExecutor
    from kb.serve.mcp import check_installed, make_server
    from kb.serve.stdio import StdioServer

    check_installed()
    spaces = open_spaces(ctx, create=True, leads=write)
    scope = scope_of(spaces, user)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    executor = CallExecutor()
    tools: tuple[Tool, ...] = ()
    pool = None
    if write:
        from kb.serve.writing import writers

        tools = writers(spaces.first, stop)
        pool = spaces.first.pool(reads_files=True)
        pool.start(recovers=True)
    server = make_server(spaces, scope, executor, tools)
    if sys.stdin.isatty():
        warn("waiting for a client on standard input; Ctrl-C stops it")
    line = StdioServer(server, stop)
    line.start()
    code = 1
    try:
        line.wait()
        code = 0
    except KeyboardInterrupt:
        code = _INTERRUPTED
    finally:
        stop.set()
        is_idle = executor.close(HURRY_S / 2)
        is_idle = (pool is None or pool.shutdown(wait_s=HURRY_S / 2)) and is_idle
        if line.is_alive() or not is_idle:
            # A thread that reads or computes cannot be told to end, and the home must not be
            # closed under it. What is committed is kept, and jobs in hand are done again.
            sys.stderr.flush()
            os._exit(code)
    ctx.exit(code)

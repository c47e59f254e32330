"""The command group: finds a command's file when it is called, so that `--help` stays quick."""

import atexit
import contextlib
import gc
import io
import os
import sys
import threading
from typing import Any, Final

import click

# Each section of `kb --help`: name -> what it says of the command. Each command lives in <name>.py,
# - as _, as `command`, or in DERIVED.
SECTIONS: Final[dict[str, dict[str, str]]] = {
    "Take in and find": {
        "init": "Make a home, and write entries about kb into yours.",
        "add": "Take in files, folders or standard input.",
        "search": "Find passages by words and by meaning.",
        "ask": "Answer a question from what is here, with its sources.",
        "similar": "Find passages like a doc or a passage.",
        "facets": "List what a search can be narrowed to.",
    },
    "Docs": {
        "ls": "List docs.",
        "show": "Show a doc or a passage.",
        "open": "Open a doc's file at the line, or its page.",
        "export": "Write a doc's markdown to standard output or a file.",
        "rm": "Remove docs; the same file added again brings them back.",
        "visibility": "Say who may see a doc.",
        "entities": "List who and what is mentioned.",
        "growth": "Count docs by month.",
    },
    "Keep current": {
        "sync-all": "Bring folders and pages level with what was added.",
        "sources": "List the folders and pages that are kept current.",
        "watch": "Keep folders current while it runs.",
        "worker": "Work on what is still to do.",
        "job": "Say how it stands with a job, or list jobs.",
        "stats": "Count what there is.",
    },
    "Agents and guidance": {
        "mcp": "Answer an agent by MCP on standard input and output.",
        "learn": "List topics, and read their subjects.",
        "prompt": "Print the part of a system prompt that tells of topics.",
        "guide": "Say how things are done, by entries alone.",
        "new": "Write a new entry into the home's knowledge folder.",
        "entries": "List entries, and references that lead nowhere.",
        "signals": "List what agents left for a person.",
        "note": "Keep notes in a git repository of markdown.",
    },
    "Share": {
        "serve": "Answer over HTTP, and work on what is still to do.",
        "token": "Say who may ask the server.",
        "pack": "Work with packs: docs that a manifest describes and links.",
        "registry": "Publish entries, and name registries to pull from.",
        "pull": "Take entries from registries.",
        "sync-knowledge": "Bring pulled entries level with their registries.",
    },
    "Look after the home": {
        "check": "Check that everything is whole.",
        "doctor": "Look at what surrounds the store, and say what to mend.",
        "backup": "Copy the whole home, and bring it back.",
        "migrate": "Copy the whole home into a database, or back into a folder.",
        "compact": "Remove what nothing needs any more.",
        "eval": "Measure how well questions are answered whose docs you know.",
        "embedder": "Show or change the model that embeds passages.",
        "trust": "Accept a home that your kb did not make.",
        "config": "List the settings with where each is set, and change them.",
        "completion": "Print the script that completes kb in a shell.",
    },
}
COMMANDS: Final[dict[str, str]] = {
    name: text for section in SECTIONS.values() for name, text in section.items()
}
_NAME_COLUMNS: Final = max(map(len, COMMANDS))

_INTERRUPTED: Final = 130
_OBJECTS_A_SWEEP: Final = 50_000
COMPLETING: Final = "_KB_COMPLETE"
"""Set in the environment where a shell asks what it may complete."""

OUTPUT: Final = "standard output"
"""How an error names it whose file it is."""

# Those made of the operation of this name.
DERIVED: Final = frozenset(("facets", "growth"))
# Those that can be sent to a server.
ASKED_OF_SERVERS: Final = DERIVED | {
    *("search", "show", "ls", "ask", "similar", "entities"),
    *("add", "note", "job"),
}


class _Commands(click.Group):
    # The signatures are click's, so `ctx` stays though nothing here needs it.

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        import importlib

        if cmd_name in DERIVED:
            from kb_cli.derived import command_of

            operations = importlib.import_module(f"kb.operations.{cmd_name}")
            command = command_of(getattr(operations, cmd_name.upper()))
        else:
            command = importlib.import_module(f"kb_cli.{cmd_name.replace('-', '_')}").command
        _show_examples(command, cmd_name)
        if COMPLETING in os.environ:
            from kb_cli.completing import give_values

            give_values(command, cmd_name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """What a shell may complete, without a look into any command."""
        from kb_cli.completing import commands_of

        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*commands_of(COMMANDS, incomplete), *options]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from kb_cli.synonyms import SYNONYMS, command_words

            args = command_words(args)
            if args[0].startswith("--"):
                super().parse_args(ctx, args)  # --help or --version, which end the command
            elif args[0] not in COMMANDS:
                from kb_cli.wrong_command import sentence_of

                raise click.UsageError(sentence_of(args[0], COMMANDS, (*SYNONYMS, "help")), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                rows = [(name.ljust(_NAME_COLUMNS), text) for name, text in commands.items()]
                formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # The reader of our output left; that is its right.
            drop_output()
            ctx.exit(0)


def _show_examples(command: click.Command, name: str) -> None:
    """Have the help of a command, and of those in it, end with an example."""
    from kb_cli.examples import EXAMPLES

    if isinstance(command, click.Group):
        for inner, inner_command in command.commands.items():
            _show_examples(inner_command, f"{name} {inner}")
    example = EXAMPLES.get(name)
    if example is not None and "Example:" not in (command.epilog or ""):
        command.epilog = f"{command.epilog or ''}\n\n\b\nExample: {example}".strip("\n")


def _version(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        from kb import __version__

        click.echo(f"kb {__version__}")
        ctx.exit()


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: kb add FOLDER, then: kb search WORDS",
)
@click.option(
    "--home",
    metavar="DIR",
    help="The home to use, not that of KB_HOME, .kb/ upward, or yours; also postgresql://.",
)
@click.option(
    "--space",
    type=click.Choice(["user", "project", "all"]),
    help="Your own home, the project's, or both, for commands that only read.",
)
@click.option(
    "--server", metavar="URL", help="Ask a running server instead of a home; '' for none."
)
@click.option(
    "--cfg",
    multiple=True,
    metavar="KEY=VALUE|KEY+=VALUE|FILE|NAME",
    help="Set a setting for this call; += adds to a list; a file, or a name in config.d/, is read.",
)
@click.option(
    "-v",
    "--verbose",
    count=True,
    help="Say more on standard error, and where an error arose; twice for more.",
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_version,
    help="Show the version and exit.",
)
@click.pass_context
def kb(
    ctx: click.Context,
    home: str | None,
    space: str | None,
    server: str | None,
    cfg: tuple[str, ...],
    verbose: int,
) -> None:
    """Find what you once read: a local search engine for your files, pages and notes."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        ctx.color = False
    ctx.obj.update(home=home, space=space, server=server, cfg=cfg, verbose=verbose)
    if server:
        _check_server(ctx)
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def _check_server(ctx: click.Context) -> None:
    """Pass where a server can be asked for the command. Raises UsageError."""
    options, name = ctx.obj, ctx.invoked_subcommand
    if options["home"] is not None or options["space"] is not None:
        raise click.UsageError("--server excludes --home and --space; give only one", ctx)
    if name is not None and name not in ASKED_OF_SERVERS:
        able = ", ".join(sorted(ASKED_OF_SERVERS))
        raise click.UsageError(
            f"kb {name} does not work with a server; these commands do: {able}", ctx
        )


def main() -> None:
    """Run the command line; every error becomes a line and an exit code here."""
    # Threads for algebra cost more to start than the small vectors of a search gain by them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # What a start makes stays: looking through all of it for cycles again and again finds none.
    gc.set_threshold(_OBJECTS_A_SWEEP, 20, 20)
    _name_every_file()
    _open_streams()
    if COMPLETING in os.environ:
        _prepare_completion()
    options: dict[str, Any] = {}
    try:
        code = kb.main(standalone_mode=False, obj=options, complete_var=COMPLETING)
    except click.exceptions.Exit as ended:
        code = ended.exit_code
    except BaseException as error:  # noqa: BLE001  the one place that turns errors into exit codes
        from kb_cli.errors import exit_code_of

        code = exit_code_of(error, verbose=bool(options.get("verbose")))
    _end(code if isinstance(code, int) else 0)


def _name_every_file() -> None:
    """Start again in Python's UTF-8 mode where the locale's encoding cannot name every file."""
    if sys.getfilesystemencoding() == "utf-8" or os.environ.get("PYTHONUTF8") == "1":
        return
    os.environ["PYTHONUTF8"] = "1"
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606  no shell


def _open_streams() -> None:
    """Give each closed standard stream the null device, so that no file of ours takes its place."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(_Output(sys.stdout.fileno(), "wb", closefd=False)),
            encoding=sys.stdout.encoding,
            line_buffering=sys.stdout.line_buffering,
            write_through=sys.stdout.write_through,
        )
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets its number, not an error.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def drop_output() -> None:
    """Forget what could not be written, so that Python says nothing of it at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Output(io.FileIO):
    """Standard output, which its errors name: it may be full where the home is not."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = OUTPUT
            raise


def _prepare_completion() -> None:
    """Keep errors and questions out of the line that somebody is typing."""
    from kb_cli.completing import give_values

    give_values(kb, "")
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 2):
        os.dup2(nothing, fd)
    os.close(nothing)


def _end(code: int) -> None:
    """Exit without taking the interpreter apart, which costs a sixth of a search."""
    others = [thread for thread in threading.enumerate() if not thread.daemon]
    # What cannot be written, and a thread that is not done, are for the long way out. On Ctrl-C
    # nobody waits for a thread that is in the middle of a computation.
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        if code == _INTERRUPTED or others == [threading.main_thread()]:
            atexit._run_exitfuncs()  # noqa: SLF001  as multiprocessing ends its children
            os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()

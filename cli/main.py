"""The command group: finds a command's file when it is called, so that `--help` stays quick."""

import sys
from typing import Final

import click

# name -> what `kb --help` says of it. Each lives in cli/<name>.py as `command`.
COMMANDS: Final[dict[str, str]] = {
    "add": "Take in files, folders or standard input.",
    "search": "Find passages by words and by meaning.",
    "similar": "Find passages like a doc or a passage.",
    "ls": "List docs.",
    "show": "Show a doc or a passage.",
    "rm": "Remove docs; the same file added again brings them back.",
    "visibility": "Say who may see a doc.",
    "export": "Write a doc's markdown to a file.",
    "stats": "Count what there is.",
    "worker": "Work on what is still to do.",
    "compact": "Remove what nothing needs any more.",
    "check": "Check that everything is whole.",
}


class _Commands(click.Group):
    # The signatures are click's, so `ctx` stays though nothing here needs it.

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        import importlib

        found: click.Command = importlib.import_module(f"cli.{cmd_name}").command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from kb import __version__

        click.echo(f"kb {__version__}")
        ctx.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--home", metavar="DIR", help="The store to use; else KB_HOME, .kb/ upward, the user's."
)
@click.option("--space", type=click.Choice(["user", "project", "all"]), help="Which space's store.")
@click.option("--cfg", multiple=True, metavar="KEY=VALUE|KEY+=VALUE|FILE", help="Set a setting.")
@click.option("-v", "--verbose", count=True, help="Say more on standard error.")
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_version)
@click.pass_context
def kb(
    ctx: click.Context, home: str | None, space: str | None, cfg: tuple[str, ...], verbose: int
) -> None:
    """Find what you once read: a local search engine for your files, pages and notes."""
    ctx.obj = {"home": home, "space": space, "cfg": cfg, "verbose": verbose}


def main() -> None:
    """Run the command line; every error becomes a line and an exit code here."""
    try:
        code = kb.main(standalone_mode=False)
    except click.exceptions.Exit as ended:
        code = ended.exit_code
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except BaseException as error:  # noqa: BLE001  the one place that turns errors into exit codes
        from cli.errors import exit_code_of

        code = exit_code_of(error, verbose="-v" in sys.argv[1:])
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()

"""`kb export`: a doc's markdown, to standard output or a file."""

import os
import sys
from pathlib import Path

import click

from kb.errors import UsageError
from kb.operations import export
from kb.operations.export import ExportRequest
from kb_cli.filters import id_or_path
from kb_cli.home import open_to_read
from kb_cli.output import clean, size


@click.command(name="export")
@click.argument("ident", metavar="ID|PATH")
@click.option(
    *("-o", "--to", "target"),
    default="-",
    metavar="PATH",
    help="Write to this file, or into this folder, not to standard output.",
)
@click.option("--raw", is_flag=True, help="The source's own bytes instead of the markdown.")
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
@click.pass_context
def command(ctx: click.Context, ident: str, target: str, raw: bool, force: bool) -> None:
    """Write what a doc says, as markdown."""
    result = export.run(open_to_read(ctx), ExportRequest(ident=id_or_path(ident)[0], raw=raw))
    if target == "-":
        _print(result.data, ident)
        return
    path = Path(target)
    if path.is_dir():
        path = path / result.file_name
    _write(path, result.data, force=force)
    click.echo(clean(str(path)))


def _print(data: bytes, ident: str) -> None:
    """As they are, but for a terminal: that gets text alone, and none that could drive it."""
    if not sys.stdout.isatty():
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise UsageError(
            f"the source of {ident} is {size(len(data))} of no text, and not for a terminal; "
            "-o FILE writes it to a file"
        )
    from kb_cli.learn import print_text

    print_text(text)


def _write(path: Path, data: bytes, *, force: bool) -> None:
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if force else os.O_EXCL)
    try:
        fd = os.open(path, flags, 0o600)
    except FileExistsError as error:
        raise UsageError(f"{path} is there already; --force overwrites it") from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    with os.fdopen(fd, "wb") as file:
        file.write(data)

"""`kb export`: write a doc's markdown to a file."""

import os
import sys
from pathlib import Path

import click

from kb.errors import UsageError
from kb.operations import export
from kb.operations.export import ExportRequest
from kb_cli.home import open_to_read
from kb_cli.output import clean


@click.command(name="export")
@click.argument("ident", metavar="ID")
@click.option("--to", "target", required=True, metavar="PATH", help="A file, a folder, or -.")
@click.option("--raw", is_flag=True, help="The source's own bytes instead of the markdown.")
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
@click.pass_context
def command(ctx: click.Context, ident: str, target: str, raw: bool, force: bool) -> None:
    """Write what a doc says, as markdown, to a file."""
    result = export.run(open_to_read(ctx), ExportRequest(ident=ident, raw=raw))
    if target == "-":
        sys.stdout.buffer.write(result.data)
        sys.stdout.buffer.flush()
        return
    path = Path(target)
    if path.is_dir():
        path = path / result.file_name
    _write(path, result.data, force=force)
    click.echo(clean(str(path)))


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

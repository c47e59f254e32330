"""`kb config`: the settings, where each is set, and their files."""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from kb.errors import ConfigError, HeldBack, UsageError
from kb.operations import settings
from kb.operations.settings import LEVELS, Level, SetResult, SettingRow, SettingsLayers
from kb.operations.settings_file import read_text, write_text
from kb_cli.editor import NoEditor, editor_words, run_program
from kb_cli.home import settings_layers
from kb_cli.output import clean, cut, print_json, warn
from kb_cli.words import text

_AS_JSON: Final = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_IN: Final = click.option(
    "--in",
    "level",
    type=click.Choice(LEVELS),
    default="user",
    show_default=True,
    help="Whose file: your own, or that of the home.",
)


@click.group(name="config", invoke_without_command=True)
@_AS_JSON
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List the settings with where each is set, and change them."""
    if ctx.invoked_subcommand is None:
        _list(ctx, as_json=as_json)
    elif as_json:
        raise UsageError("put --json after the command: kb config list --json")


@command.command(name="list")
@_AS_JSON
@click.pass_context
def show_all(ctx: click.Context, as_json: bool) -> None:
    """List the settings files in their order, and every setting with where it is set.

    A terminal shows the start of a long default; `kb config get SETTING` prints all of it.
    """
    _list(ctx, as_json=as_json)


def _list(ctx: click.Context, *, as_json: bool) -> None:
    report = settings.list_settings(settings_layers(ctx), os.environ)
    for warning in report.warnings:
        warn(warning)
    if as_json:
        print_json(report)
        return
    for file in report.files:
        state = "" if file.exists else "  (not there)"
        click.echo(clean(f"{file.path}{state if file.trusted else '  (counts in part)'}"))
    click.echo()
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for row in report.settings:
        click.echo(_line(row, columns))


def _line(row: SettingRow, columns: int | None = None) -> str:
    line = clean(f"{row.key} = {_value(row)}")
    if row.layer == "default":
        return click.style(line if columns is None else cut(line, columns), dim=True)
    return f"{line}  {click.style(clean(f'({row.place})'), fg='cyan')}"


def _value(row: SettingRow) -> str:
    if row.secret:
        return "not set" if row.layer == "default" else "set, and not shown"
    return msgspec.json.encode(row.value).decode()


@command.command(name="get")
@click.argument("key", metavar="SETTING", type=text)
@_AS_JSON
@click.pass_context
def get(ctx: click.Context, key: str, as_json: bool) -> None:
    """Print the value of one setting."""
    row = settings.setting(settings_layers(ctx), os.environ, key)
    if row.secret:
        place = "not set" if row.place is None else f"set by {row.place}"
        raise HeldBack(f"{key} is a secret, which kb never shows; it is {place}")
    if as_json:
        print_json(row)
    else:
        click.echo(clean(row.value if isinstance(row.value, str) else _value(row)))


@command.command(name="set")
@click.argument("key", metavar="SETTING", type=text)
@click.argument("value", type=text)
@_IN
@click.pass_context
def set_(ctx: click.Context, key: str, value: str, level: Level) -> None:
    """Write a setting into a file, whose comments and order stay.

    VALUE is written as in TOML; text needs no quotes. Nothing is written that kb would refuse.
    """
    result = settings.set_value(settings_layers(ctx), os.environ, level, key, value)
    _print_result(result)


@command.command(name="unset")
@click.argument("key", metavar="SETTING", type=text)
@_IN
@click.pass_context
def unset(ctx: click.Context, key: str, level: Level) -> None:
    """Take a setting out of a file."""
    _print_result(settings.unset_value(settings_layers(ctx), os.environ, level, key))


def _print_result(result: SetResult) -> None:
    for warning in result.warnings:
        warn(warning)
    click.echo(_line(result.setting))
    place = result.setting.place or ""
    if result.is_set and place != result.file and not place.startswith(f"{result.file}:"):
        warn(f"{result.file} sets it, and {place or 'nothing'} counts instead")


@command.command(name="edit")
@_IN
@click.pass_context
def edit(ctx: click.Context, level: Level) -> None:
    """Open a settings file in the editor, and keep what is valid.

    The editor is VISUAL, else EDITOR. A text that kb would refuse does not replace the file.
    """
    layers = settings_layers(ctx)
    file = settings.file_of(layers, level)
    words = editor_words(os.environ)
    if not words:
        raise NoEditor(f"no editor is set; set VISUAL or EDITOR, or edit {file} yourself")
    before = read_text(file)
    folder = Path(tempfile.mkdtemp(prefix="kb-config-"))
    draft = folder / file.name
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(before.encode())
    try:
        is_written = _edit_until_valid(layers, [*words, str(draft)], draft, file, before)
    finally:
        if read_text(draft) in (before, read_text(file)):
            shutil.rmtree(folder)
    click.echo(clean(f"{file}: {'written' if is_written else 'as it was'}"))
    if not is_written:
        warn("an editor with windows needs its option to wait, such as `code --wait`")


def _edit_until_valid(
    layers: SettingsLayers, argv: list[str], draft: Path, file: Path, before: str
) -> bool:
    """Whether the file was written, rather than left as it was. Raises UsageError."""
    while True:
        run_program(argv)
        try:
            after = read_text(draft)
            if after == before:
                return False
            settings.check_text(layers, os.environ, file, after)
            write_text(file, after, before=before)
        except (ConfigError, UsageError) as error:
            if sys.stdin.isatty():
                warn(str(error))
                if click.confirm("Edit it again?", default=True, err=True):
                    continue
            raise UsageError(
                f"{error}; {file} stays as it was, and your text is in {draft}"
            ) from error
        return True


@command.command(name="path")
@_AS_JSON
@click.pass_context
def path(ctx: click.Context, as_json: bool) -> None:
    """Print the folders in which kb keeps settings, data and caches, there or not."""
    folders = settings.folders(settings_layers(ctx))
    if as_json:
        print_json(folders)
        return
    rows: dict[str, Any] = msgspec.to_builtins(folders)
    for name, folder in rows.items():
        click.echo(clean(f"{name:>6}  {folder}"))

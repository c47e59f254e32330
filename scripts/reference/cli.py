"""The pages of the commands, from click."""

from collections.abc import Iterator

import click
from kb_cli.main import SECTIONS
from kb_cli.main import kb as group

from reference.markdown import flat, page, part, slug, table


def pages() -> Iterator[tuple[str, str]]:
    """The list of commands, and a page for each section of it."""
    yield "cli.md", _first_page()
    for title, commands in SECTIONS.items():
        blocks = [
            _command(name, group.get_command(click.Context(group), name)) for name in commands
        ]
        yield f"cli-{slug(title)}.md", page(f"Commands: {title.lower()}", *blocks)


def _first_page() -> str:
    lists = []
    for title, commands in SECTIONS.items():
        at = f"cli-{slug(title)}.md"
        rows = [[f"[`kb {name}`]({at}#kb-{name})", text] for name, text in commands.items()]
        lists += [f"## {title}", table(("command", "what it does"), rows)]
    usage = f"```text\nkb {' '.join(group.collect_usage_pieces(click.Context(group)))}\n```"
    return page("Commands", flat(group.help), usage, _options(group), part("cli/kb"), *lists)


def _command(name: str, found: click.Command | None) -> str:
    assert found is not None
    blocks = [f"## `kb {name}`", *_about(name, found), part(f"cli/{name}")]
    if isinstance(found, click.Group):
        for inner, command in found.commands.items():
            blocks += [f"### `kb {name} {inner}`", *_about(f"{name} {inner}", command)]
            blocks += [part(f"cli/{name}.{inner}")]
    return "\n\n".join(text for text in blocks if text)


def _about(words: str, command: click.Command) -> list[str]:
    context = click.Context(command, info_name=f"kb {words}")
    usage = " ".join(("kb", words, *command.collect_usage_pieces(context)))
    example = (command.epilog or "").partition("Example: ")[2]
    shown = f"{usage}\n\nExample: {example}" if example else usage
    text = "\n\n".join(flat(text) for text in (command.help or "").replace("\b", "").split("\n\n"))
    return [f"```text\n{shown}\n```", text, _options(command)]


def _options(command: click.Command) -> str:
    context = click.Context(command)
    rows = [
        [_names(found, context), _meaning(found, context)]
        for found in command.get_params(context)
        if isinstance(found, click.Option) and not found.hidden and "--help" not in found.opts
    ]
    return table(("option", "what it does"), rows)


def _names(option: click.Option, context: click.Context) -> str:
    takes = "" if option.is_flag or option.count else f" {option.make_metavar(context)}"
    short, whole = (sorted(option.opts, key=len)[:-1], max(option.opts, key=len))
    names = [*short, whole + takes, *option.secondary_opts]
    return ", ".join(f"`{name}`" for name in names)


def _meaning(option: click.Option, context: click.Context) -> str:
    text = [flat(option.help)]
    if option.multiple:
        text.append("May be given more than once.")
    extra = option.get_help_extra(context)
    if default := extra.get("default"):
        text.append(f"Default: `{default}`.")
    if bounds := extra.get("range"):
        text.append(f"Range: `{bounds}`.")
    return " ".join(text)

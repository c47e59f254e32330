"""What a shell may complete: the values of options and arguments, by what their help calls them.

A shell asks while somebody types. So nothing here prints, asks or writes.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import click
from click.shell_completion import CompletionItem

_Values = Callable[[click.Context], Iterable[tuple[str, str]]]
_Completer = Callable[[click.Context, str], list[CompletionItem[str]]]
# What a shell takes as it is: no quote, no blank, nothing that it expands.
_PLAIN: Final = re.compile(r"[\w@.+/=-]+")
# Names in the notebook, not files of the working directory.
_NO_FILES: Final = frozenset(("note get",))


def commands_of(commands: Mapping[str, str], typed: str) -> list[CompletionItem[str]]:
    """The commands that start with what was typed, and what each does."""
    return [
        CompletionItem(name, help=line) for name, line in commands.items() if name.startswith(typed)
    ]


def give_values(command: click.Command, path: str) -> None:
    """Let the options and arguments of a command, and of those in it, complete their values."""
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            give_values(inner, f"{path} {name}")
    for param in command.params:
        completer = None if isinstance(param.type, click.Choice) else _completer(param, path)
        if completer is not None:
            param.shell_complete = completer  # type: ignore[assignment, method-assign]


def _completer(param: click.Parameter, path: str) -> _Completer | None:
    words = re.findall(r"[A-Z_]+", param.metavar or (param.name or "").upper())
    if words == ["VALUE"]:
        return _from(_setting_values)
    for word in words:
        if word in _VALUES:
            return _from(_VALUES[word])
    if path in _NO_FILES:
        return None
    if {"FILE", "PATH", "SOURCE", "PLACE"}.intersection(words):
        return _files
    return _folders if "DIR" in words else None


def _from(values: _Values) -> _Completer:
    def complete(ctx: click.Context, typed: str) -> list[CompletionItem[str]]:
        options = ctx.find_root().params
        ctx.obj.update({name: options.get(name) for name in ("home", "space", "server")})
        ctx.obj.update(cfg=options.get("cfg") or (), verbose=0)
        return [
            CompletionItem(value, help=title or None)
            for value, title in values(ctx)
            if value.startswith(typed) and _PLAIN.fullmatch(value)
        ]

    return complete


def _files(_: click.Context, typed: str) -> list[CompletionItem[str]]:
    return [CompletionItem(typed, type="file")]


def _folders(_: click.Context, typed: str) -> list[CompletionItem[str]]:
    return [CompletionItem(typed, type="dir")]


def _topics(ctx: click.Context) -> Iterable[tuple[str, str]]:
    from kb_cli.home import texts_of

    _, settings = texts_of(ctx)
    for name, topic in settings.kb.topic.items():
        if topic.enable:
            yield name, topic.title or ""


def _packs(ctx: click.Context) -> Iterable[tuple[str, str]]:
    from kb.operations.pack_registered import list_packs
    from kb_cli.home import open_to_read

    for pack in list_packs(open_to_read(ctx)).packs:
        yield pack.selector or pack.pack_id, pack.version


def _settings(_: click.Context) -> Iterable[tuple[str, str]]:
    from kb.operations.settings import setting_names

    return ((name, "") for name in setting_names())


def _setting_values(ctx: click.Context) -> Iterable[tuple[str, str]]:
    from kb.operations.settings import allowed_words

    return ((word, "") for word in allowed_words(ctx.params.get("key") or ""))


_VALUES: Final[dict[str, _Values]] = {
    "SETTING": _settings,
    "TOPIC": _topics,
    "PACK": _packs,
    "PACKS": _packs,
}
"""By a word of the metavar."""

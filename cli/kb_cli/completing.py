"""What a shell may complete: the values of options and arguments, by what their help calls them.

A shell asks while somebody types. So nothing here prints, asks or writes.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import click
from click.shell_completion import CompletionItem

_Values = Callable[[click.Context, str], Iterable[tuple[str, str]]]
"""What fits what was typed, each with what it is; others among them are left out."""
_Completer = Callable[[click.Context, str], list[CompletionItem[str]]]
# What a shell takes as it is: no quote, no blank, nothing that it expands.
_PLAIN: Final = re.compile(r"[\w@.+/=-]+")
# Names in the notebook, not files of the working directory.
_NO_FILES: Final = frozenset(("note get",))
_FILES: Final = frozenset(("FILE", "PATH", "SOURCE", "PLACE"))
_DOCS_MAX: Final = 200
_ID_SHOWN: Final = 9


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
    files = path not in _NO_FILES and not _FILES.isdisjoint(words)
    names = {f"{path} {param.name}", (param.name or "").upper(), *words}
    values = next((_VALUES[name] for name in _VALUES if name in names), None)
    if values is not None:
        return _from(values, or_files=files)
    if files:
        return _files
    return _folders if "DIR" in words else None


def _from(values: _Values, *, or_files: bool = False) -> _Completer:
    def complete(ctx: click.Context, typed: str) -> list[CompletionItem[str]]:
        options = ctx.find_root().params
        ctx.obj.update({name: options.get(name) for name in ("home", "space", "server")})
        ctx.obj.update(cfg=options.get("cfg") or (), verbose=0)
        items = [
            CompletionItem(value, help=title or None)
            for value, title in values(ctx, typed)
            if value.startswith(typed) and _PLAIN.fullmatch(value)
        ]
        # The script of bash takes files where nothing else fits.
        return [*(_files(ctx, typed) if or_files else ()), *items]

    return complete


def _files(_: click.Context, typed: str) -> list[CompletionItem[str]]:
    return [CompletionItem(typed, type="file")]


def _folders(_: click.Context, typed: str) -> list[CompletionItem[str]]:
    return [CompletionItem(typed, type="dir")]


def _topics(ctx: click.Context, _: str) -> Iterable[tuple[str, str]]:
    from kb_cli.home import texts_of

    settings = texts_of(ctx)[1]
    for name, topic in settings.kb.topic.items():
        if topic.enable:
            yield name, topic.title or ""


def _packs(ctx: click.Context, _: str) -> Iterable[tuple[str, str]]:
    from kb.operations.pack_registered import list_packs
    from kb_cli.home import open_to_read

    for pack in list_packs(open_to_read(ctx)).packs:
        yield pack.selector or pack.pack_id, pack.version


def _settings(_: click.Context, __: str) -> Iterable[tuple[str, str]]:
    from kb.operations.settings import setting_names

    return ((name, "") for name in setting_names())


def _setting_values(ctx: click.Context, _: str) -> Iterable[tuple[str, str]]:
    from kb.operations.settings import allowed_words

    return ((word, "") for word in allowed_words(ctx.params.get("key") or ""))


def _docs(ctx: click.Context, typed: str) -> Iterable[tuple[str, str]]:
    """The newest docs by their ids."""
    from kb.operations.docs import DOCS, DocsRequest
    from kb_cli.answering import answer

    page, _ = answer(ctx, DOCS, DocsRequest(limit=_DOCS_MAX))
    return ((doc.doc_id[: max(_ID_SHOWN, len(typed))], doc.title) for doc in page.docs)


def _docs_by_id(ctx: click.Context, typed: str) -> Iterable[tuple[str, str]]:
    """The same where an id is being typed, and not the name of a file."""
    return _docs(ctx, typed) if re.fullmatch("d[0-9a-f]+", typed) else ()


def _tags(ctx: click.Context, _: str) -> Iterable[tuple[str, str]]:
    from kb.operations.facets import FACETS, FacetsRequest
    from kb_cli.answering import answer

    facets, _several = answer(ctx, FACETS, FacetsRequest())
    return ((row.value, f"{row.docs:,} docs") for row in facets.tags)


def _sources(ctx: click.Context, _: str) -> Iterable[tuple[str, str]]:
    from kb.operations.sources import list_sources
    from kb_cli.home import open_to_read

    return ((row.location, row.kind) for row in list_sources(open_to_read(ctx)).sources)


def _notes(ctx: click.Context, _: str) -> Iterable[tuple[str, str]]:
    from kb.operations.notes import list_notes
    from kb_cli.home import open_to_read

    app = open_to_read(ctx)
    return ((row.path, row.title) for row in list_notes(app, (), 0, app.caller).notes)


def _backups(ctx: click.Context, _: str) -> Iterable[tuple[str, str]]:
    from kb.operations.backups import list_backups
    from kb_cli.home import home_of

    return ((backup.name, backup.reason) for backup in list_backups(home_of(ctx)[0]).backups)


def _registries(ctx: click.Context, _: str) -> Iterable[tuple[str, str]]:
    from kb.operations.registries import list_registries
    from kb_cli.home import open_to_read

    return ((row.name, row.location) for row in list_registries(open_to_read(ctx)).registries)


def _tokens(ctx: click.Context, _: str) -> Iterable[tuple[str, str]]:
    from kb.operations.tokens import list_tokens
    from kb_cli.home import open_to_read

    return ((row.name, row.role) for row in list_tokens(open_to_read(ctx)).tokens)


def _nothing(_: click.Context, __: str) -> Iterable[tuple[str, str]]:
    return ()


_VALUES: Final[dict[str, _Values]] = {
    "signals done ident": _nothing,
    "job ident": _nothing,
    "new references": _nothing,
    "note get path": _notes,
    "pull registry": _registries,
    "registry rm name": _registries,
    "token rm name": _tokens,
    "SETTING": _settings,
    "TOPIC": _topics,
    "PACK": _packs,
    "PACKS": _packs,
    "BACKUP": _backups,
    "TAGS": _tags,
    "TAG": _tags,
    "PLACE": _sources,
    "DOC_IDS": _docs,
    "ID": _docs_by_id,
}
"""By a command and the name of its parameter, that name, or a word of the metavar; first first."""

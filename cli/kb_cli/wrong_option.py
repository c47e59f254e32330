"""What to say of an option that a command does not have."""

import difflib
import shlex
import sys
from typing import Final

import click

_NEAR: Final = 0.6


def sentence_of(error: click.NoSuchOption) -> str:
    """That there is no such option, and what was probably meant."""
    ctx = error.ctx
    option = _as_typed(error.option_name)
    said = f"no option {option}"
    if ctx is None:
        return said
    root = ctx.find_root()
    if ctx is not root and error.option_name in _options(root):
        rest = ctx.command_path.partition(" ")[2]
        return f"{said} of {ctx.command_path}; it goes before the command: kb {option} ... {rest}"
    near = _near(option, _options(ctx))
    if near is not None:
        return f"{said}; did you mean {near}?"
    if _takes_words(ctx.command):
        behind = shlex.join((*ctx.command_path.split(), "--", option))
        return f"{said}; a word that begins with - goes behind --: {behind}"
    return said


def _as_typed(name: str) -> str:
    """The whole word: click reads -lian as the options -l, -i, -a and -n."""
    if name.startswith("--"):
        return name
    return next((word for word in sys.argv[1:] if word.startswith(name)), name)


def _options(ctx: click.Context) -> list[str]:
    params = [param for param in ctx.command.get_params(ctx) if isinstance(param, click.Option)]
    return [name for param in params for name in (*param.opts, *param.secondary_opts)]


def _near(option: str, options: list[str]) -> str | None:
    word = option.lstrip("-")
    names = [name.removeprefix("--") for name in options if name.startswith("--")]
    starts = [name for name in names if name.startswith(word)] if len(word) > 1 else []
    near = difflib.get_close_matches(word, names, n=1, cutoff=_NEAR)
    return next((f"--{name}" for name in (*starts, *near)), None)


def _takes_words(command: click.Command) -> bool:
    """Whether what is typed behind it is text rather than files or names."""
    return any(param.name == "words" for param in command.params)

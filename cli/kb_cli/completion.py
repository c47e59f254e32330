"""`kb completion`: the script with which a shell completes kb's command lines."""

from typing import Final, Literal

import click

_Shell = Literal["bash", "zsh", "fish"]
_SHELLS: Final = ("bash", "zsh", "fish")


_WHERE: Final = """\b
Where it goes:
  bash  kb completion bash > ~/.local/share/bash-completion/completions/kb
  zsh   kb completion zsh > ~/.zfunc/_kb, with ~/.zfunc in fpath before compinit
  fish  kb completion fish > ~/.config/fish/completions/kb.fish
"""


@click.command(name="completion", epilog=_WHERE)
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: _Shell) -> None:
    """Print the script that completes commands, options and values in your shell."""
    from click.shell_completion import get_completion_class

    from kb_cli.main import COMPLETING

    script = get_completion_class(shell)(ctx.find_root().command, {}, "kb", COMPLETING)
    click.echo(script.source())

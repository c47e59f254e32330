"""`kb pack`: sets of docs that somebody has described, as a group of commands."""

import click

from kb_cli import pack_archive, pack_author, pack_query, pack_register


@click.group(name="pack")
def command() -> None:
    """Work with knowledge packs: docs with a manifest that describes and links them.

    PACK is the id or the selector of a registered pack, or the path of one that is not.
    """


for _module in (pack_register, pack_query, pack_author, pack_archive):
    for _command in _module.COMMANDS:
        command.add_command(_command)

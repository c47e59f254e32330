"""Every error as a line on standard error and an exit code, in one place."""

import errno
import os
import sys

import click

from kb.errors import KbError


def exit_code_of(error: BaseException, *, verbose: bool) -> int:
    """Say what happened, and return the documented exit code."""
    match error:
        case SystemExit():
            return error.code if isinstance(error.code, int) else 1
        case KeyboardInterrupt() | click.Abort():
            click.echo("kb: interrupted; what was committed is kept", err=True)
            return 130
        case BrokenPipeError():
            # The reader of our output left; that is its right. Keep Python from telling.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        case KbError():
            if str(error):
                click.echo(f"kb: {error}", err=True)
        case OSError() if error.errno in (errno.ENOSPC, errno.EDQUOT):
            click.echo("kb: the disk is full; what was committed is kept", err=True)
        case OSError():
            click.echo(f"kb: {error.strerror or error}", err=True)
        case _:
            click.echo(f"kb: an unexpected error: {type(error).__name__}: {error}", err=True)
            click.echo("kb: this is a defect in kb; run again with -v for its place", err=True)
    if verbose:
        import traceback

        traceback.print_exception(error)
    return error.exit_code if isinstance(error, KbError) else 1

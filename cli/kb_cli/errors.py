"""Every error as a line on standard error and an exit code, in one place."""

import errno
import re

import click

from kb.errors import KbError
from kb_cli.main import OUTPUT, drop_output
from kb_cli.output import clean

_RANGE = r"is not in the range (?:(\S+)<=x<=(\S*\d)|x>=(\S*\d)|x<=(\S*\d))"


def exit_code_of(error: BaseException, *, verbose: bool) -> int:
    """Say what happened, and return the documented exit code."""
    match error:
        case SystemExit():
            return error.code if isinstance(error.code, int) else 1
        case KeyboardInterrupt() | click.Abort():
            _say("interrupted; what was committed is kept")
            return 130
        case click.UsageError():
            return _usage_code(error)
        case click.ClickException():
            _say(_sentence(error.format_message()))
            return error.exit_code
        case KbError():
            _say(str(error))
        case OSError():
            if error.filename == OUTPUT:
                drop_output()
            _say(_os_sentence(error))
        case _:
            _say(f"an unexpected error: {type(error).__name__}: {error}")
            _say("this is a defect in kb; kb -v COMMAND shows its place")
    if verbose:
        import traceback

        traceback.print_exception(error)
    return error.exit_code if isinstance(error, KbError) else 1


def _os_sentence(error: OSError) -> str:
    limited = "the size of files is limited (ulimit -f)"
    if error.filename == OUTPUT:
        reason = limited if error.errno == errno.EFBIG else error.strerror
        return f"the output could not be written: {reason}; what was committed is kept"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full; what was committed is kept"
    if error.errno == errno.EFBIG:
        named = error.filename or "a file that was written to"
        return f"{named} cannot grow: {limited}"
    named = f"{error.filename}: " if error.filename else ""
    return f"{named}{error.strerror or error}"


def _usage_code(error: click.UsageError) -> int:
    # A group alone asks what its commands are. click before 8.2 has no such error, so by its name.
    if type(error).__name__ == "NoArgsIsHelpError" and error.ctx is not None:
        click.echo(error.ctx.get_help())
        return 0
    if isinstance(error, click.NoSuchOption):
        from kb_cli.wrong_option import sentence_of

        _say(sentence_of(error))
    elif error.ctx is not None and (name := getattr(error, "command_name", None)):
        # Of a group of commands. click before 8.4 has no such error.
        from kb_cli.wrong_command import sentence_in_group

        group = error.ctx.command
        assert isinstance(group, click.Group)
        _say(sentence_in_group(name, group, error.ctx.command_path))
    else:
        _say(_sentence(error.format_message()))
    path = error.ctx.command_path if error.ctx else "kb"
    click.echo(f"see {path} --help", err=True)
    return error.exit_code


def _say(text: str) -> None:
    if text:
        click.echo(f"kb: {clean(text)}", err=True)


def _number(match: "re.Match[str]") -> str:
    return "is no whole number" if match[1] == "integer" else "is no number"


def _bounds(match: "re.Match[str]") -> str:
    low, high, least, most = match.groups()
    if low:
        return f"is not from {low} to {high}"
    return f"is less than {least}" if least else f"is more than {most}"


def _sentence(text: str) -> str:
    """A message of click's in the shape of ours: no capital in front, no full stop behind."""
    line = re.sub("is not a valid (integer|float)( range)?", _number, " ".join(text.split()))
    line = re.sub(_RANGE, _bounds, line)
    start = line[:1].lower() + line[1:] if line[1:2].islower() else line
    return start.removesuffix(".")

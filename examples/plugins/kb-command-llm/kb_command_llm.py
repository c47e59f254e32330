"""Asks a program on this machine: the question on its standard input, the answer on its output."""

import shlex
import subprocess
from collections.abc import Iterator, Mapping

from kb.errors import ConfigError, ModelUnavailable
from kb.plugins import LlmSettings, Provider


class Command:
    """The language model behind a command line."""

    def __init__(self, settings: LlmSettings) -> None:
        self.name = f"command:{settings.model}"
        self._argv = shlex.split(settings.model)
        self._timeout_s = settings.timeout_s

    def complete(self, system: str, user: str) -> str:
        """The whole answer."""
        try:
            done = subprocess.run(
                self._argv,
                input=f"{system}\n\n{user}",
                capture_output=True,
                check=True,
                text=True,
                timeout=self._timeout_s,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise ModelUnavailable(str(error), place=self.name) from error
        return done.stdout

    def stream(self, system: str, user: str) -> Iterator[str]:
        """The whole answer in one piece: programs buffer what they write."""
        yield self.complete(system, user)


def make(settings: LlmSettings, env: Mapping[str, str]) -> Provider:
    """What asks the command that `llm.model` names."""
    if not settings.model:
        raise ConfigError("empty; give a command line", place="llm.model")
    return Command(settings)

"""The interface of every provider: a question in, checked text out."""

from collections.abc import Iterator
from typing import NoReturn, Protocol

from kb.errors import NoModel


class Provider(Protocol):
    """A language model behind a server. Safe to share by threads; nothing is kept between calls.

    Methods raise ModelUnavailable after the last try, ModelRejected where the server will not
    take the question, ModelRefused where the model declines, BadAnswer where the answer is empty,
    cut short or cannot be read, NoModel where none is set up. No error holds the key.
    """

    @property
    def name(self) -> str:
        """Provider and model, as `ollama:llama3.2`; `none` where there is none."""
        ...

    def complete(self, system: str, user: str) -> str:
        """The whole answer, never blank. Lone surrogates in the question become `?`."""
        ...

    def stream(self, system: str, user: str) -> Iterator[str]:
        """The answer in pieces, none of them empty, as they come.

        Nothing is asked before the first piece is wanted. Once one was given there is no further
        try: what breaks off then raises, and the pieces so far are no answer. The time of a
        question runs while the caller holds a piece. Dropping the iterator hangs up.
        """
        ...


class NoProvider:
    """No model: every question raises NoModel, which says how to set one up."""

    name = "none"

    def complete(self, system: str, user: str) -> NoReturn:  # noqa: ARG002
        """Raise NoModel."""
        raise NoModel

    def stream(self, system: str, user: str) -> NoReturn:  # noqa: ARG002
        """Raise NoModel."""
        raise NoModel

"""A notebook with a remote, and what pushes it."""

from pathlib import Path

import msgspec
from git_host import tip
from notebooks import NoteHome, git

from kb.knowledge.notebook import Pusher, PushReport, Sender
from kb.knowledge.notebook.sending import Outcome, SendRequest


class PushHome(NoteHome):
    """A home with a notebook that has one note, and what pushes it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.place("# One\n\nHere stands one.\n", "work")
        self.sender = Sender()
        self.requests: list[SendRequest] = []
        self._lock = folder / "push.lock"
        self.bound_to("")
        self.seconds_max: int | None = None

    def bound_to(self, token_host: str) -> None:
        """Have the user's settings name the host that may have the token."""
        self.pusher = Pusher(
            self.home.store,
            self.root,
            self._lock,
            lambda: 0.0,
            self.send,
            token_host=token_host,
        )

    def send(self, request: SendRequest) -> Outcome | None:
        self.requests.append(request)
        if self.seconds_max is not None:
            request = msgspec.structs.replace(request, seconds_max=self.seconds_max)
        return self.sender(request)

    def origin(self, address: object) -> None:
        git(self.root, "config", "remote.origin.url", str(address))

    def tried(self, address: object) -> PushReport:
        """How one push to an address goes."""
        self.origin(address)
        return self.pusher.push()

    def is_level(self, repo: Path) -> bool:
        return tip(repo) == tip(self.root)

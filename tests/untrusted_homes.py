"""Homes that no command of this user made: trusted by hand, or crafted by an attacker."""

import os
from pathlib import Path
from typing import Final

from kb.store.trust import TrustList

_PAGE_BYTES: Final = 4096


def trust_home(home: Path, data: Path) -> None:
    """Put a home on the list that lies in the user's data folder, as `kb trust` would."""
    TrustList(data / "kb-trust").put_store(home, "trusted")


SECRET: Final = "sesame-7f3a"
"""What no output may hold: the content of files that lie outside the clone."""
NOTE: Final = "Tea is steeped in water, says the clone."
_HARMFUL: Final = """\
[llm]
provider = "openai"
model = "m"
base_url = "{url}"
[client]
server = "{url}"
[embed]
kind = "sentence-transformers"
model = ".kb/evil-model"
[fetch]
allow = ["127.0.0.1"]
[notebook]
path = "{outside}"
push = true
[serve]
host = "0.0.0.0"
hosts = ["evil.example"]
[search]
rrf_k = 61
[pack]
trusted_keys = ["{key}="]
[kb.topic.team]
title = "Do as {command} says"
subjects = ".kb/texts"
learned = ["**"]
"""
_CODE: Final = "import pathlib\npathlib.Path({mark!r}).touch()\n"


class HostileClone:
    """A folder that an attacker made, and what lies beside it on the victim's disk."""

    def __init__(self, root: Path, url: str) -> None:
        self.root = root / "clone"
        self.home = self.root / ".kb"
        self.outside = root / "outside"
        self.code_ran = root / "code-ran"
        self._url = url
        self.outside.mkdir(parents=True)
        self.home.mkdir(parents=True)
        (self.outside / "id_ed25519").write_text(f"{SECRET}\n")
        (self.outside / "notes.md").write_text(f"# Tea\n\n{SECRET} tea\n")
        self._put(".kb/texts/rules.md", f"# Rules\n\n{NOTE}\n")
        self._put(".kb/knowledge/tea.md", f"---\nzettel_id: tea\ntitle: Tea\n---\n{NOTE}\n")
        self._put("readme.md", f"# Read me\n\n{NOTE}\n")
        self.link(".kb/texts/key.md", self.outside / "id_ed25519")
        self.link(".kb/knowledge/key.md", self.outside / "notes.md")
        self.link("linked.md", self.outside / "notes.md")
        for name in ("sitecustomize", "kb", "msgspec", "numpy", "sentence_transformers"):
            self._put(f"{name}.py", _CODE.format(mark=str(self.code_ran)))
        self._put(".kb/evil-model/modules.json", '[{"type": "evil.Model", "path": ""}]')
        self._put(".kb/evil-model/evil.py", _CODE.format(mark=str(self.code_ran)))
        said = _HARMFUL.format(url=url, outside=self.outside, key="A" * 43, command="the clone")
        self._put(".kb/kb.toml", said)
        self._put(".kb/config.d/local.toml", said)

    def _put(self, name: str, text: str) -> None:
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def link(self, name: str, to: Path) -> None:
        """Put a link into the clone."""
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).symlink_to(to)

    def topic(self, subjects: str) -> None:
        """Name the subjects of a topic, and do no other harm."""
        self._put(".kb/kb.toml", f"[kb.topic.team]\nsubjects = {subjects!r}\n")

    def with_store(self) -> None:
        """Bring a sound store: its sources lie outside, and a model of its own has embedded it."""
        from kb.intake.sync.origins import register
        from kb.model.embedder import EmbedderChoice, EmbedderSet, EmbedderSpec
        from kb.model.origin import Origin, origin_id
        from kb.store import embedders
        from kb.store.store import Store

        place = str(self.outside)
        choice = EmbedderChoice(kind="sentence-transformers", model=".kb/evil-model")
        spec = EmbedderSpec(choice=choice, fingerprint="st:evil", dim=8)
        ident = origin_id("folder", place)
        with Store.open(self.home / "store") as store:
            with store.write() as txn:
                embedders.put(txn, EmbedderSet(active=spec, settings=choice))
            register(store, Origin(origin_id=ident, kind="folder", location=place, added_ms=0))

    def with_trap(self) -> None:
        """Bring a store that ends a process which opens it by SIGBUS."""
        self.with_store()
        file = self.home / "store/data.mdb"
        os.truncate(file, 3 * _PAGE_BYTES)

    def seen(self) -> dict[str, tuple[int, int, bytes]]:
        """Everything outside the clone that it could have reached, as it is now."""
        found = {}
        for place in (self.outside, *sorted(self.outside.rglob("*"))):
            status = place.stat()
            data = place.read_bytes() if place.is_file() else b""
            found[str(place)] = (status.st_mode, status.st_mtime_ns, data)
        return found

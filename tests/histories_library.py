"""The dictionary: what a home must hold after each operation, and what it may show of it."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from histories import (
    DAY_MS,
    PACK_TITLE,
    PACKED,
    Add,
    AddAll,
    BackUp,
    ChangeModel,
    Compact,
    Forget,
    OnHome,
    OnSources,
    OnWhole,
    PackAdd,
    PackRemove,
    Remove,
    Restore,
    Show,
    Sync,
    Work,
)
from histories_disk import Disk, Text
from msgspec import Struct

from kb.model.doc import Visibility

TOMBSTONE_DAYS: Final = 30
# Compactions that must have seen a removed doc before one of them may forget it.
COMPACTIONS_MIN: Final = 2

State = Literal["active", "removed", "vanished", "unsure"]
"""Found; taken out by a person; gone with its file; found or gone, as the home says next."""


class Held(Struct, frozen=True, kw_only=True):
    """What the home must hold of one place."""

    text: Text
    visibility: frozenset[str]
    """Any of these: several where it is open whether an earlier doc is remembered."""
    state: State = "active"
    doc_id: str = ""
    """Empty where it is not known yet."""
    waits: bool = False
    """Taken in, but not to be found by its words yet."""
    hidden_ms: int = 0
    compactions: int = 0
    """How many have seen it hidden."""
    is_open: bool = False
    """Hidden so long that the home may have forgotten it."""

    @property
    def is_active(self) -> bool:
        return self.state == "active"


class Row(Struct, frozen=True, kw_only=True):
    """An active doc as a home lists it."""

    doc_id: str
    place: str
    title: str
    visibility: str


class Found(Struct, frozen=True, kw_only=True):
    """A passage as a home finds it."""

    doc_id: str
    place: str
    title: str
    text: str
    line: int | None
    freshness: str


class World(Struct, kw_only=True):
    """Everything that a home must hold."""

    docs: dict[str, Held] = msgspec.field(default_factory=dict)
    folders: dict[str, Visibility | None] = msgspec.field(default_factory=dict)
    """Those that are registered, with what was asked for them."""
    pack: Visibility | None = None
    """Who may see the pack; None where it is not registered."""
    texts: dict[str, Text] = msgspec.field(default_factory=dict)
    """By every doc id that was ever shown: what it names."""

    def copy(self) -> "World":
        return World(
            docs=dict(self.docs),
            folders=dict(self.folders),
            pack=self.pack,
            texts=dict(self.texts),
        )


def title_of(place: str, text: Text) -> str:
    """As the home must call it."""
    if place in PACKED:
        return PACK_TITLE
    return text.heading or Path(place).stem


def _is_open(held: Held | None) -> bool:
    return held is not None and not held.is_active and held.is_open


class Library:
    """The dictionary: what the home must hold now."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.world = World()
        self.backup: World | None = None
        self.words: list[str] = []
        """Every word that any file has ever held, the newest last."""

    # What comes of an operation.

    def do(self, op: OnHome, now_ms: int) -> None:
        """Have what the operation brings about."""
        if isinstance(op, OnSources):
            self._do_sources(op, now_ms)
        else:
            self._do_whole(op, now_ms)

    def _do_sources(self, op: OnSources, now_ms: int) -> None:
        match op:
            case Add(place, visibility, wait):
                self._take_in([place], visibility, revive=True)
                self._settle(wait=wait and place in self.disk.files)
            case AddAll(folder, visibility, wait):
                self._take_in(self._under(folder), visibility, revive=True)
                known = self.world.folders.get(folder)
                self.world.folders[folder] = visibility or known
                self._settle(wait=wait)
            case Forget(folder):
                self.world.folders.pop(folder, None)
            case Remove(place):
                self._hide([place], "removed", now_ms)
            case Show(place, visibility):
                self._show(place, visibility)
            case Sync(accept_deletions):
                self._sync(now_ms, accept_deletions=accept_deletions)
                self._settle(wait=True)
            case PackAdd(visibility):
                self.world.pack = visibility or self.world.pack or "public"
                self._take_in(PACKED, visibility, revive=True)
                self._settle(wait=True)
            case PackRemove():
                self._remove_pack(now_ms)

    def _do_whole(self, op: OnWhole, now_ms: int) -> None:
        match op:
            case Compact():
                self._compact(now_ms)
            case Work() | ChangeModel():
                self._settle(wait=True)
            case BackUp():
                self.backup = self.world.copy()
            case Restore():
                if self.backup is not None:
                    self.world = self.backup.copy()
            case _:
                # A clock, a check, a cache or another folder changes nothing that is held.
                pass

    def _show(self, place: str, visibility: Visibility) -> None:
        held = self.world.docs.get(place)
        if held is not None and held.is_active:
            self._change(place, visibility=frozenset((visibility,)))

    def _remove_pack(self, now_ms: int) -> None:
        if self.world.pack is not None:
            self.world.pack = None
            self._hide(PACKED, "vanished", now_ms)

    def _change(self, place: str, **changes: Any) -> None:
        self.world.docs[place] = msgspec.structs.replace(self.world.docs[place], **changes)

    def _settle(self, *, wait: bool) -> None:
        for place, held in self.world.docs.items():
            if held.waits and wait:
                self._change(place, waits=False)

    def _under(self, folder: str) -> list[str]:
        return [place for place in self.disk.files if place.startswith(f"{folder}/")]

    def _hide(self, places: Iterable[str], state: State, now_ms: int) -> None:
        for place in places:
            held = self.world.docs.get(place)
            if held is not None and held.is_active:
                self._change(place, state=state, hidden_ms=now_ms, compactions=0, waits=False)

    def _default(self, place: str) -> str:
        if place in PACKED:
            return self.world.pack or "public"
        folder = self._owner_of(place)
        return (self.world.folders[folder] if folder else None) or "private"

    def _owner_of(self, place: str) -> str | None:
        """The registered folder that a place is of: the innermost."""
        inside = [folder for folder in self.world.folders if place.startswith(f"{folder}/")]
        return max(inside, key=len, default=None)

    def _take_in(
        self,
        places: Iterable[str],
        visibility: Visibility | None,
        *,
        revive: bool,
        first: Callable[[str], str] = lambda _: "private",
    ) -> None:
        for place in places:
            text = self.disk.files.get(place)
            held = self.world.docs.get(place)
            if text is None or (held and held.state == "removed" and not revive):
                continue
            if place in PACKED:
                first = self._default
            seen = {visibility or first(place)}
            doc_id, waits = "", True
            if held is not None:
                seen = {visibility} if visibility else set(held.visibility)
                if _is_open(held):
                    seen.add(visibility or first(place))
                elif held.text == text:
                    doc_id, waits = held.doc_id, held.waits
            self.world.docs[place] = Held(
                text=text, visibility=frozenset(seen), doc_id=doc_id, waits=waits
            )

    def _compact(self, now_ms: int) -> None:
        for place, held in self.world.docs.items():
            if not held.is_active:
                old = now_ms - held.hidden_ms >= TOMBSTONE_DAYS * DAY_MS
                ripe = old and held.compactions >= COMPACTIONS_MIN
                count = held.compactions + 1
                self._change(place, compactions=count, is_open=held.is_open or ripe)

    def _sync(self, now_ms: int, *, accept_deletions: bool) -> None:
        files = self.disk.files
        before = dict(self.world.docs)
        own: dict[str, list[str]] = {folder: [] for folder in self.world.folders}
        for place in files:
            if folder := self._owner_of(place):
                own[folder].append(place)
        here = [place for places in own.values() for place in places]
        gone = [p for p in before if p not in files and p not in PACKED and self._owner_of(p)]
        self._take_in(here, None, revive=False, first=self._default)
        # One that is empty may not be mounted: what is not there is not lost.
        steady = {folder for folder in own if own[folder] or accept_deletions}
        self._hide([p for p in gone if self._owner_of(p) in steady], "vanished", now_ms)
        for text in {before[p].text for p in gone}:
            self._move(text, before, here, [p for p in gone if before[p].text == text])
        if self.world.pack is not None:
            self._take_in(PACKED, None, revive=False)

    def _move(
        self, text: Text, before: Mapping[str, Held], here: list[str], gone: list[str]
    ) -> None:
        """New files that say what a lost one said are that doc, at another place."""
        docs, files = self.world.docs, self.disk.files
        left = [p for p in gone if before[p].state != "removed" and not _is_open(before[p])]
        left_maybe = [p for p in gone if before[p].state != "removed" and _is_open(before[p])]
        fresh = [p for p in here if files[p] == text and p not in before]
        # Where it is open whether an earlier doc is remembered, so is whether this is it.
        maybe = [p for p in here if files[p] == text and _is_open(before.get(p))]
        if not (fresh or maybe) or not (left or left_maybe):
            return
        is_sure = len(left) >= len(fresh) + len(maybe)
        is_one = len(left) == len(fresh) == 1 and not maybe and not left_maybe
        for place in (*fresh, *maybe):
            seen = set[str]().union(
                *(self._seen_at(before[p], p, place) for p in (*left, *left_maybe))
            )
            if place in maybe:
                seen |= docs[place].visibility
            elif not is_sure:
                seen.add(self._default(place))
            doc_id = before[left[0]].doc_id if is_one else ""
            self._change(place, visibility=frozenset(seen), doc_id=doc_id)
        is_all = len(left) + len(left_maybe) <= len(fresh)
        for place in (*left, *left_maybe):
            if is_all:
                del docs[place]
            elif docs[place].is_active:
                self._change(place, state="unsure")
            else:
                self._change(place, is_open=True)

    def _seen_at(self, held: Held, place: str, to: str) -> set[str]:
        """Who may see a doc after a move: what its folder gave stays in the folder."""
        if self._owner_of(place) == self._owner_of(to):
            return set(held.visibility)
        given = self._default(place)
        return {self._default(to) if one == given else one for one in held.visibility}

    # What a home shows is judged.

    def current(self) -> dict[str, Held]:
        """What is active, by place."""
        return {place: held for place, held in self.world.docs.items() if held.is_active}

    def judge_rows(self, rows: list[Row]) -> None:
        """The docs that are listed are those that there must be, each once and under one id."""
        places = Counter(row.place for row in rows)
        ids = Counter(row.doc_id for row in rows)
        assert not [place for place, times in places.items() if times > 1], places
        assert not [doc_id for doc_id, times in ids.items() if times > 1], ids
        for place, held in list(self.world.docs.items()):
            if held.state == "unsure":
                is_there = place in places
                self._change(
                    place, state="active" if is_there else "vanished", is_open=not is_there
                )
        current = self.current()
        assert set(places) == set(current), (sorted(places), sorted(current))
        for row in rows:
            held = current[row.place]
            title = title_of(row.place, held.text)
            assert row.title == title, (row, held)
            assert row.visibility in held.visibility, (row, held)
            assert held.doc_id in ("", row.doc_id), (row, held)
            named = self.world.texts.setdefault(row.doc_id, held.text)
            assert named == held.text, f"{row.doc_id} named {named} before"
            self._change(row.place, doc_id=row.doc_id, visibility=frozenset((row.visibility,)))

    def judge_found(self, found: Iterable[Found], words: Iterable[str]) -> None:
        """Each word brings the docs that hold it, with what they say, and nothing else."""
        asked = set(words)
        got: dict[str, list[Found]] = {word: [] for word in asked}
        for hit in found:
            for word in asked & set(hit.text.split()):
                got[word].append(hit)
        for word, places in self.places_of(asked).items():
            hits = [hit for hit in got[word] if not self._waits(hit.place)]
            assert sorted(hit.place for hit in hits) == sorted(places), (word, hits, places)
            for hit in hits:
                self._judge_hit(hit, self.current()[hit.place])

    def places_of(self, words: Iterable[str]) -> dict[str, list[str]]:
        """Where each word must be found."""
        places: dict[str, list[str]] = {word: [] for word in words}
        for place, held in self.current().items():
            for word in held.text.words:
                if word in places and not held.waits:
                    places[word].append(place)
        return places

    def _waits(self, place: str) -> bool:
        held = self.world.docs.get(place)
        return held is not None and held.waits

    def _judge_hit(self, hit: Found, held: Held) -> None:
        body = held.text.body
        assert hit.title == title_of(hit.place, held.text), hit
        assert hit.doc_id == held.doc_id, hit
        assert hit.text in body, hit
        assert hit.line == body[: body.index(hit.text)].count("\n") + 1, hit
        now = self.disk.files.get(hit.place)
        expected = "gone" if now is None else "fresh" if now == held.text else "changed"
        assert hit.freshness == expected, hit

    def visible(self, visibility: str) -> Iterator[str]:
        """Places whose docs everybody of this visibility's audience sees."""
        return (p for p, held in self.current().items() if visibility in held.visibility)

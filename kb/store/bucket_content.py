"""Content of a home that machines share, whose large originals may lie in a bucket.

An object is written before the transaction that names it, under a name that is never used again.
So nobody waits for the bucket in a transaction, and an object that a committed transaction no
longer names can be removed at any time after it. What a transaction counts as removed
(`_REMOVALS`) was unnamed then, and stays so: who has uploaded anything before that uploads it anew.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from kb.errors import UsageError
from kb.model.failpoints import failpoint
from kb.store.bucket.place import BucketPlace, checked, place_of, put_place
from kb.store.content.files import RemovedContent
from kb.store.content.layout import HomePaths
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.meta import last_number, next_number
from kb.store.records import CONTENT, ContentPart
from kb.store.store import Store
from kb.store.stored_content import StoredContent, head_key, heads, parts_at, whole

if TYPE_CHECKING:
    from kb.store.bucket.bucket import Bucket

LARGE_BYTES: Final = 64 << 10
"""Originals of more bytes lie in the bucket. Markdown does not: searches and workers read it."""
_ORIGINALS: Final = "raw/"
_STRAY: Final = "bucket:"
_REMOVALS: Final = "bucket_removals"
_UPLOADS_MAX: Final = 4_096
_NONCE_BYTES: Final = 8
_PROBE: Final = "probe"


class _Upload(Struct, frozen=True, kw_only=True):
    """An object that no record names yet."""

    name: str
    place: BucketPlace
    removals: int
    """How many removals had been counted before it was written."""


def is_large(relative: str, size_bytes: int) -> bool:
    """Whether a content lies in the bucket of a home that has one."""
    return size_bytes > LARGE_BYTES and relative.startswith(_ORIGINALS)


def new_object(relative: str) -> str:
    """A name for an object of a content, which no other object ever has."""
    return f"{relative}.{os.urandom(_NONCE_BYTES).hex()}"


def head_of(relative: str, size_bytes: int, name: str) -> tuple[bytes, ContentPart]:
    """The record that names the object of a content."""
    head = ContentPart(data=b"", path=relative, size_bytes=size_bytes, object=name)
    return head_key(relative), head


class BucketContent(StoredContent):
    """Records, and for large originals objects that the records name."""

    def __init__(self, store: Store, paths: HomePaths) -> None:
        super().__init__(store, paths)
        self._lock = threading.Lock()
        self._uploads: OrderedDict[str, _Upload] = OrderedDict()
        self._bucket: Bucket | None = None
        self._stray_bytes: dict[str, int] = {}

    def stage(self, relative: str, data: bytes) -> None:
        """Write the object of a large original, unless the home has that content."""
        upload = self._upload(relative, data) if is_large(relative, len(data)) else None
        with self._lock:
            self._uploads.pop(relative, None)
            if upload is not None:
                self._uploads[relative] = upload
            # Bounded; what falls out is written again.
            while len(self._uploads) > _UPLOADS_MAX:
                self._uploads.popitem(last=False)

    def _upload(self, relative: str, data: bytes, *, anew: bool = False) -> _Upload | None:
        """Write an object; None where the home has no bucket, or that content, unless `anew`."""
        with self._store.read() as txn:
            place = place_of(txn)
            if not place.url or (not anew and CONTENT.get(txn, head_key(relative)) is not None):
                return None
            removals = last_number(txn, _REMOVALS)
        name = new_object(relative)
        failpoint("bucket.before_put")
        self._bucket_at(place).put(name, data)
        failpoint("bucket.after_put")
        return _Upload(name=name, place=place, removals=removals)

    def keep(self, txn: WriteTxn, relative: str, data: bytes) -> bool:
        """Name the object, or write the records; False if the object may be gone."""
        if not is_large(relative, len(data)) or not place_of(txn).url:
            return super().keep(txn, relative, data)
        if CONTENT.get(txn, head_key(relative)) is not None:
            return super().keep(txn, relative, data)
        upload = self._uploads.get(relative)
        if upload is None or not _is_there(txn, upload):
            return False
        CONTENT.put(txn, *head_of(relative, len(data), upload.name))
        return True

    def replace(self, relative: str, data: bytes) -> None:
        """Name a new object in the place of a damaged or missing one."""
        is_done = False
        while not is_done:
            large = is_large(relative, len(data))
            upload = self._upload(relative, data, anew=True) if large else None
            if upload is None:
                super().replace(relative, data)
                return
            with self._store.write() as txn:
                is_done = _is_there(txn, upload)
                if is_done:
                    # The former object has no name from now on, so a compaction removes it.
                    super().remove(txn, relative)
                    CONTENT.put(txn, *head_of(relative, len(data), upload.name))

    def read(self, relative: str, sha256: str) -> bytes:
        """The bytes of a path. Raises StoreDamaged, and what a bucket raises."""
        if not relative.startswith(_ORIGINALS):
            return super().read(relative, sha256)
        with self._store.read() as txn:
            parts = parts_at(txn, relative)
            place = place_of(txn) if parts and parts[0].object else None
        if place is None:
            data = b"".join(part.data for part in parts) if parts else None
        elif place.url:
            data = self._bucket_at(place).get(parts[0].object, parts[0].size_bytes)
        else:
            data = None
        return whole(relative, data, sha256)

    def all_paths(self, txn: ReadTxn) -> Iterator[str]:
        """The paths of all content, and a path for each object that none of them names."""
        place = place_of(txn)
        named: set[str] = set()
        for head in heads(txn):
            yield head.path
            if head.object:
                named.add(head.object)
        # The bucket is listed after the records are read: what is missing among these is unnamed,
        # or of later.
        self._stray_bytes = {}
        for name, size_bytes in self._bucket_at(place).names() if place.url else ():
            if name not in named:
                self._stray_bytes[name] = size_bytes
                yield _STRAY + name

    def size_of(self, txn: ReadTxn, relative: str) -> int:
        """How many bytes a path has; 0 if there are none."""
        if relative.startswith(_STRAY):
            return self._stray_bytes.get(relative.removeprefix(_STRAY), 0)
        return super().size_of(txn, relative)

    def remove(self, txn: WriteTxn, relative: str) -> RemovedContent | None:
        """Give up an object: take its name from it, or count that it has none, if it has none."""
        if relative.startswith(_STRAY):
            name = relative.removeprefix(_STRAY)
            head = CONTENT.get(txn, head_key(name.rpartition(".")[0]))
            if head is not None and head.object == name:
                return None
            size_bytes = self.size_of(txn, relative)
        else:
            head = CONTENT.get(txn, head_key(relative))
            removed = super().remove(txn, relative)
            if removed is None or head is None or not head.object:
                return removed
            name, size_bytes = head.object, removed.size_bytes
        next_number(txn, _REMOVALS)
        return RemovedContent(size_bytes=size_bytes, object=name)

    def discard(self, objects: Sequence[str]) -> None:
        """Remove objects that no record names any more."""
        if objects:
            with self._store.read() as txn:
                place = place_of(txn)
            failpoint("bucket.before_delete")
            self._bucket_at(place).delete(objects)

    def _bucket_at(self, place: BucketPlace) -> "Bucket":
        with self._lock:
            if self._bucket is None or self._bucket.place != place:
                from kb.store.bucket.bucket import Bucket

                self._bucket = Bucket(place)
            return self._bucket


def _is_there(txn: ReadTxn, upload: _Upload) -> bool:
    """Whether an object that no record names is surely where the home now looks for it."""
    return upload.place == place_of(txn) and upload.removals == last_number(txn, _REMOVALS)


def try_bucket(place: BucketPlace) -> None:
    """Write an object and remove it. Raises as `Bucket`, and UsageError without its library."""
    from kb.store.bucket.bucket import Bucket

    bucket = Bucket(place)
    bucket.put(_PROBE, b"kb")
    bucket.delete([_PROBE])


def use_bucket(store: Store, place: BucketPlace) -> None:
    """Have a home keep large originals in a place from now on; without a URL, in its records.

    What is there stays where it is. So all objects that the home names must be in the new place
    already. Raises UsageError if they are not, and as `try_bucket`.
    """
    with store.read() as txn:
        before = place_of(txn)
    folder = before.folder or os.urandom(_NONCE_BYTES).hex()
    place = checked(msgspec.structs.replace(place, folder=folder))
    present: set[str] = set()
    if place.url:
        from kb.store.bucket.bucket import Bucket

        try_bucket(place)
        present = {name for name, _ in Bucket(place).names()}
    with store.write() as txn:
        # Whoever uploads meanwhile notices in the transaction that the place is another.
        wanted = (head.object for head in heads(txn)) if before.folder else ()
        missing = sum(1 for name in wanted if name and name not in present)
        if missing:
            advice = f"copy {before.prefix}/ there before" if place.url else "`kb migrate` the home"
            raise UsageError(
                f"{missing:,} originals of this home are in {before.url}, and not in "
                f"{place.url or 'the database'}; {advice}"
            )
        put_place(txn, place)

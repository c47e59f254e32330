"""Where a home's bucket is: kept in its database, so that all machines agree."""

import re
from typing import Final

import msgspec
from msgspec import Struct

from kb.errors import UsageError
from kb.model.decoding import decode_json
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.meta import get_word, set_word

BUCKET_WORD: Final = "bucket"
_REGION_DEFAULT: Final = "us-east-1"
_URL: Final = r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:/[A-Za-z0-9._-]{1,128}){0,8})/?"


class BucketPlace(Struct, frozen=True, kw_only=True):
    """A bucket, and where in it the objects of one home are."""

    url: str = ""
    """s3://BUCKET/PREFIX; empty for none."""
    endpoint: str = ""
    """Where the server is; empty for that of AWS."""
    region: str = ""
    folder: str = ""
    """A name that no other home has, below the prefix: homes that share both stay apart."""

    @property
    def bucket(self) -> str:
        """The name of the bucket."""
        return self._parts[0]

    @property
    def prefix(self) -> str:
        """What all names of this home's objects begin with, without the last slash."""
        return f"{self._parts[1]}/{self.folder}".lstrip("/")

    @property
    def server(self) -> str:
        """The URL of the server."""
        return self.endpoint or f"https://s3.{self.region or _REGION_DEFAULT}.amazonaws.com"

    @property
    def signing_region(self) -> str:
        """The region that requests are signed for; most servers but AWS take any."""
        return self.region or _REGION_DEFAULT

    @property
    def _parts(self) -> tuple[str, str]:
        match = re.fullmatch(_URL, self.url)
        if match is None or {".", ".."} & set(match[2].split("/")):
            raise UsageError("a bucket is s3://NAME or s3://NAME/PREFIX")
        return match[1], match[2]


def checked(place: BucketPlace) -> BucketPlace:
    """The place itself. Raises UsageError for one that is none."""
    if place.url:
        _ = place.bucket
    return place


def place_of(txn: ReadTxn) -> BucketPlace:
    """The bucket of the home; one without a URL if it has none."""
    text = get_word(txn, BUCKET_WORD)
    return decode_json(text, BucketPlace) if text else BucketPlace()


def put_place(txn: WriteTxn, place: BucketPlace) -> None:
    """Let the home use another bucket; `kb.store.bucket_content` checks that it may."""
    set_word(txn, BUCKET_WORD, msgspec.json.encode(place).decode())

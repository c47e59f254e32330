"""The objects of one home in a bucket: written once under a name of their own, read, removed."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from kb import __version__
from kb.errors import (
    BucketRefused,
    KbError,
    StoreFull,
    StoreUnreachable,
    UsageError,
    install_command,
)
from kb.store.bucket.credentials import find_key, has_role
from kb.store.bucket.place import BucketPlace

if TYPE_CHECKING:
    from obstore.store import S3Credential, S3Store

_CONNECT_S: Final = 10
_ANSWER_S: Final = 60
_BYTES_PER_S_MIN: Final = 256 << 10
_RETRIES_MAX: Final = 3
_RETRY_S: Final = 60
_KEY_S: Final = 300
# Of an answer, or of one object of several that were to be removed.
_CODE: Final = r"(?:<Code>|\(code: )([A-Za-z0-9.]{1,64})[<)]"
_STATUS: Final = r"status code: ([0-9]{3})"
_OTHER_REGION: Final = "it is in another region; set content.region"
# Servers send codes with more than one status.
_MEANINGS: Final = {
    "NoSuchBucket": "there is no such bucket",
    "RequestTimeTooSkewed": "this machine's clock is wrong; set it",
    "ExpiredToken": "the key has expired ({}); renew it",
    "TokenRefreshRequired": "the key has expired ({}); renew it",
    "PermanentRedirect": _OTHER_REGION,
    "AuthorizationHeaderMalformed": _OTHER_REGION,
    "IllegalLocationConstraintException": _OTHER_REGION,
    "InvalidLocationConstraint": _OTHER_REGION,
    "InvalidRegionName": _OTHER_REGION,
}
_KEY_CODES: Final = ("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken")
_FULL_CODES: Final = ("QuotaExceeded", "XMinioAdminBucketQuotaExceeded", "XMinioStorageFull")
_PASSING_CODES: Final = (
    *("RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable", "OperationAborted"),
)


class Bucket:
    """Safe to share by threads. Names are relative to the home's place in the bucket.

    Each method raises StoreUnreachable where the server cannot be reached or fails after a few
    tries, BucketRefused where it will not take the request, and StoreFull.
    """

    def __init__(self, place: BucketPlace, env: Mapping[str, str] | None = None) -> None:
        self.place = place
        self._env = os.environ if env is None else env
        self._stores: dict[int, S3Store] = {}

    def put(self, name: str, data: bytes) -> None:
        """Write an object durably; a reader sees all of it or nothing."""
        with self._translated() as obstore:
            # Of an upload in parts that is cut short the parts would stay, and no list shows them.
            obstore.put(self._store(len(data)), self._key(name), data, use_multipart=False)

    def get(self, name: str, size_bytes: int) -> bytes | None:
        """The bytes of an object; None if it is not there, or has another size."""
        with self._translated() as obstore:
            try:
                result = obstore.get(self._store(size_bytes), self._key(name))
            except FileNotFoundError as error:
                if "<Code>NoSuchBucket</Code>" in str(error):
                    raise
                return None
            return bytes(result.bytes()) if result.meta["size"] == size_bytes else None

    def names(self) -> Iterator[tuple[str, int]]:
        """Every object of the home, with its size in bytes."""
        with self._translated() as obstore:
            for page in obstore.list(self._store(0), self.place.prefix, chunk_size=1_000):
                for row in page:
                    yield row["path"].removeprefix(f"{self.place.prefix}/"), row["size"]

    def delete(self, names: Sequence[str]) -> None:
        """Remove objects; those that are not there count as removed."""
        with self._translated() as obstore:
            obstore.delete(self._store(0), [self._key(name) for name in names])

    def _key(self, name: str) -> str:
        return f"{self.place.prefix}/{name}"

    def _store(self, size_bytes: int) -> "S3Store":
        """A client whose limit of time is enough for so many bytes."""
        minutes = 1 + size_bytes // (_BYTES_PER_S_MIN * 60)
        store = self._stores.get(minutes)
        if store is None:
            store = self._stores[minutes] = self._connected(minutes * _ANSWER_S)
        return store

    def _connected(self, timeout_s: int) -> "S3Store":
        from obstore.store import S3Store

        place = self.place
        if not has_role(self._env):
            # Said here, because what fails in a call back is not told apart.
            find_key(self._env, place.url)
        # All that decides where bytes go is said, so that no variable of the environment does.
        also: dict[str, Any] = {"aws_endpoint_url_s3": place.server, "aws_s3_express": False}
        return S3Store(
            place.bucket,
            endpoint=place.server,
            region=place.signing_region,
            virtual_hosted_style_request=False,
            skip_signature=False,
            unsigned_payload=False,
            **also,
            credential_provider=None if has_role(self._env) else self._credential,
            client_options={
                "allow_http": place.server.startswith("http://"),
                "connect_timeout": timedelta(seconds=_CONNECT_S),
                "timeout": timedelta(seconds=timeout_s),
                "user_agent": f"kb/{__version__}",
            },
            retry_config={
                "max_retries": _RETRIES_MAX,
                "retry_timeout": timedelta(seconds=_RETRY_S),
            },
        )

    def _credential(self) -> "S3Credential":
        """The key as it is now: whoever renews it in a file starts no process again."""
        key = find_key(self._env, self.place.url)
        return {
            "access_key_id": key.ident,
            "secret_access_key": key.secret,
            "token": key.token,
            "expires_at": datetime.now(UTC) + timedelta(seconds=_KEY_S),
        }

    @contextmanager
    def _translated(self) -> Iterator[ModuleType]:
        """The library, whose errors become those of kb."""
        try:
            import obstore
            from obstore.exceptions import BaseError
        except ModuleNotFoundError as error:
            raise UsageError(f"a bucket needs more: {install_command('s3')}") from error
        try:
            yield obstore
            return
        except (BaseError, OSError, ValueError) as error:
            failure = error_of(str(error), self.place.url)
        if isinstance(failure, BucketRefused):
            # The next request reads the key anew.
            self._stores = {}
        # Not chained: the library's text has answers of the server in it.
        raise failure from None


def error_of(text: str, place: str) -> KbError:
    """The error of kb for one of the library's, of which only known words are repeated."""
    code = _match(_CODE, text)
    status = int(_match(_STATUS, text) or 0)
    if code or status >= 400:
        return _refusal(code, status, place)
    if "Received redirect" in text:
        return BucketRefused(_OTHER_REGION, place=place)
    if "certificate" in text.lower():
        return BucketRefused("the certificate of its server is not valid", place=place)
    if "kind: Timeout" in text:
        return StoreUnreachable("its server does not answer in time", place=place)
    return StoreUnreachable("its server cannot be reached", place=place)


def _refusal(code: str, status: int, place: str) -> KbError:
    """The error for an answer of the server; of one object of several there is no status."""
    shown = " ".join(filter(None, (str(status or ""), code)))
    if code in _MEANINGS:
        return BucketRefused(_MEANINGS[code].format(shown), place=place)
    if status == 507 or code in _FULL_CODES:
        return StoreFull(f"its server has none ({shown})", place=place)
    if status == 429 or status >= 500 or code in _PASSING_CODES:
        return StoreUnreachable(f"its server is busy or fails ({shown})", place=place)
    if status in (401, 403) or code in _KEY_CODES:
        detail = f"its server refuses the key ({shown}); check the key, and what it may do"
        return BucketRefused(detail, place=place)
    return BucketRefused(f"its server refuses the request ({shown})", place=place)


def _match(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    return match[1] if match else ""

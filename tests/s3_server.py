"""A small S3 server on loopback, in memory, which checks every signature itself (AWS Signature V4).

`with serving() as server:` starts one that has the bucket `docs`. `server.faults` holds functions
that answer a request before it is looked at, and `server.requests` what was asked for.
"""

import contextlib
import datetime as dt
import hashlib
import hmac
import http.server
import threading
import time
import urllib.parse
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

HOST = "127.0.0.1"
BUCKET = "docs"
KEY_ID = "AKIDTESTONLY"
SECRET = "only-for-tests/+secret"
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET}
SKEW_S_MAX = 900
_ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True)
class S3Request:
    """What was asked for."""

    method: str
    path: str
    """As it was sent, percent-encoded."""
    query: str
    headers: Mapping[str, str]
    """By names in small letters."""
    body: bytes = b""

    @property
    def asked(self) -> str:
        """The method, and the path with its query."""
        return f"{self.method} {self.path}{'?' + self.query if self.query else ''}"


@dataclass(frozen=True)
class S3Answer:
    """A response; `delay_s` passes before it."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0


def refusal(status: int, code: str, message: str = "no") -> S3Answer:
    """An error as S3 words it."""
    body = f"<Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>"
    return S3Answer(status, body.encode(), {"content-type": "application/xml"})


Fault = Callable[[S3Request], S3Answer | None]


def signature_of(request: S3Request, secret: str, scope: str, signed: str) -> str:
    """The signature under AWS Signature V4; `scope` is DATE/REGION/SERVICE/aws4_request."""
    pairs = urllib.parse.parse_qsl(request.query, keep_blank_values=True)
    quoted = sorted((_quoted(name), _quoted(value)) for name, value in pairs)
    canonical = "\n".join(
        (
            request.method,
            request.path,
            "&".join(f"{name}={value}" for name, value in quoted),
            *(f"{name}:{' '.join(request.headers[name].split())}" for name in signed.split(";")),
            "",
            signed,
            request.headers["x-amz-content-sha256"],
        )
    )
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    to_sign = "\n".join((_ALGORITHM, request.headers["x-amz-date"], scope, digest))
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, to_sign.encode(), "sha256").hex()


def _quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="-_.~")


class S3Server(http.server.ThreadingHTTPServer):
    """The objects, by whole names below the bucket."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__((HOST, 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.requests: list[S3Request] = []
        self.faults: list[Fault] = []
        self.page_names = 1_000
        self.clock_ahead_s = 0.0

    @property
    def endpoint(self) -> str:
        """Where it is."""
        return f"http://{HOST}:{self.server_port}"

    def answer(self, request: S3Request) -> S3Answer:
        """The response to a request, whose signature is checked first."""
        self.requests.append(request)
        for fault in self.faults:
            if (answer := fault(request)) is not None:
                return answer
        return self._refused(request) or self._served(request)

    def _refused(self, request: S3Request) -> S3Answer | None:
        algorithm, _, rest = request.headers.get("authorization", "").partition(" ")
        given = dict(part.strip().partition("=")[::2] for part in rest.split(","))
        if algorithm != _ALGORITHM or set(given) != {"Credential", "SignedHeaders", "Signature"}:
            return refusal(403, "AccessDenied", "no signature")
        key_id, _, scope = given["Credential"].partition("/")
        if key_id != KEY_ID:
            return refusal(403, "InvalidAccessKeyId", "The key id does not exist in our records.")
        stamp = dt.datetime.strptime(request.headers["x-amz-date"], "%Y%m%dT%H%M%S%z")
        if abs(stamp.timestamp() - time.time() - self.clock_ahead_s) > SKEW_S_MAX:
            return refusal(403, "RequestTimeTooSkewed", "The difference is too large.")
        if signature_of(request, SECRET, scope, given["SignedHeaders"]) != given["Signature"]:
            return refusal(403, "SignatureDoesNotMatch", "The signature does not match.")
        claimed = request.headers["x-amz-content-sha256"]
        if claimed not in ("UNSIGNED-PAYLOAD", hashlib.sha256(request.body).hexdigest()):
            return refusal(400, "XAmzContentSHA256Mismatch")
        return None

    def _served(self, request: S3Request) -> S3Answer:
        bucket, _, name = urllib.parse.unquote(request.path).removeprefix("/").partition("/")
        if bucket != BUCKET:
            return refusal(404, "NoSuchBucket", "The specified bucket does not exist.")
        query = dict(urllib.parse.parse_qsl(request.query, keep_blank_values=True))
        match request.method:
            case "PUT" if not query:
                self.objects[name] = request.body
                return S3Answer(headers={"etag": f'"{hashlib.md5(request.body).hexdigest()}"'})
            case "GET" if query.get("list-type") == "2":
                return self._listed(query)
            case "GET" | "HEAD" if name in self.objects:
                return S3Answer(
                    body=self.objects[name],
                    headers={"etag": '"x"', "last-modified": "Tue, 24 Nov 2026 00:00:00 GMT"},
                )
            case "GET" | "HEAD":
                return refusal(404, "NoSuchKey", "The specified key does not exist.")
            case "DELETE":
                self.objects.pop(name, None)
                return S3Answer(204)
            case "POST" if "delete" in query:
                return self._deleted(request.body)
            case _:
                return refusal(501, "NotImplemented", request.asked)

    def _listed(self, query: Mapping[str, str]) -> S3Answer:
        after = query.get("continuation-token", query.get("start-after", ""))
        prefix = query.get("prefix", "")
        names = sorted(n for n in self.objects if n.startswith(prefix) and n > after)
        page = names[: self.page_names]
        rows = "".join(
            f"<Contents><Key>{escape(name)}</Key><Size>{len(self.objects[name])}</Size>"
            "<LastModified>2026-11-24T00:00:00.000Z</LastModified><ETag>x</ETag></Contents>"
            for name in page
        )
        more = len(names) > len(page)
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        body = (
            f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{token}{rows}"
            "</ListBucketResult>"
        )
        return S3Answer(body=body.encode(), headers={"content-type": "application/xml"})

    def _deleted(self, body: bytes) -> S3Answer:
        names = [key.text or "" for key in ET.fromstring(body).iter() if key.tag.endswith("Key")]
        for name in names:
            self.objects.pop(name, None)
        rows = "".join(f"<Deleted><Key>{escape(name)}</Key></Deleted>" for name in names)
        return S3Answer(body=f"<DeleteResult>{rows}</DeleteResult>".encode())


class _Handler(http.server.BaseHTTPRequestHandler):
    server: S3Server
    protocol_version = "HTTP/1.1"

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        path, _, query = self.path.partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.answer(S3Request(self.command, path, query, headers, body))
        time.sleep(answer.delay_s)
        with contextlib.suppress(OSError):
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _handle  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@contextlib.contextmanager
def serving() -> Iterator[S3Server]:
    """A server for the length of the block."""
    with S3Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()

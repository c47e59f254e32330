"""Objects in a bucket, on a server that checks signatures itself and fails as it is told."""

import contextlib
import http.client
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import s3_server
from s3_server import KEY_ID, SECRET, S3Answer, S3Request, S3Server, refusal

from kb.errors import BucketRefused, KbError, StoreFull, StoreUnreachable, UsageError
from kb.store.bucket import bucket as bucket_module
from kb.store.bucket.bucket import Bucket
from kb.store.bucket.credentials import AccessKey, find_key
from kb.store.bucket.place import BucketPlace, checked

URL = f"s3://{s3_server.BUCKET}/kb/notes"
WELCOME = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.fixture
def server() -> Iterator[S3Server]:
    with s3_server.serving() as server:
        yield server


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A key for the server, and no other in the environment or in a file."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, value in s3_server.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def bucket_at(server: S3Server, url: str = URL, folder: str = "home1") -> Bucket:
    return Bucket(BucketPlace(url=url, endpoint=server.endpoint, folder=folder))


# AWS publishes these examples of requests with their signatures, under a key of its own.
@pytest.mark.parametrize(
    ("method", "path", "query", "headers", "signature"),
    [
        (
            "GET",
            "/test.txt",
            "",
            {"range": "bytes=0-9", "x-amz-content-sha256": EMPTY},
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        (
            "PUT",
            "/test%24file.text",
            "",
            {
                "date": "Fri, 24 May 2013 00:00:00 GMT",
                "x-amz-content-sha256": WELCOME,
                "x-amz-storage-class": "REDUCED_REDUNDANCY",
            },
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        ),
        (
            "GET",
            "/",
            "max-keys=2&prefix=J",
            {"x-amz-content-sha256": EMPTY},
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
        (
            "GET",
            "/",
            "lifecycle",
            {"x-amz-content-sha256": EMPTY},
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
        ),
    ],
)
def test_the_server_of_the_tests_signs_as_published(
    method: str, path: str, query: str, headers: dict[str, str], signature: str
) -> None:
    """What checks kb's signatures gives those of the published examples."""
    whole = {
        "host": "examplebucket.s3.amazonaws.com",
        "x-amz-date": "20130524T000000Z",
        **headers,
    }
    request = S3Request(method, path, query, whole)
    secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
    scope = "20130524/us-east-1/s3/aws4_request"
    assert s3_server.signature_of(request, secret, scope, ";".join(sorted(whole))) == signature


def test_the_server_of_the_tests_lets_nobody_in_without_a_signature(server: S3Server) -> None:
    """A request that is not signed, or changed after it was, is refused."""
    bucket_at(server).put("raw/a", b"rope")
    signed = server.requests[-1]

    def asked(body: bytes, path: str, headers: dict[str, str]) -> int:
        connection = http.client.HTTPConnection(s3_server.HOST, server.server_port)
        with contextlib.closing(connection):
            connection.request("PUT", path, body, headers)
            return connection.getresponse().status

    kept = {k: v for k, v in signed.headers.items() if k != "content-length"}
    assert asked(b"rope", signed.path, kept) == 200
    assert asked(b"Rope", signed.path, kept) == 400
    assert asked(b"rope", signed.path + "x", kept) == 403
    assert asked(b"rope", signed.path, {}) == 403


def test_objects_come_back(server: S3Server) -> None:
    """Written, read, listed over several pages, removed in one request."""
    bucket = bucket_at(server)
    server.page_names = 3
    names = [f"raw/aa/{n:02}.pdf" for n in range(8)]
    for name in names:
        bucket.put(name, name.encode() * 1_000)
    assert bucket.get(names[0], 1_000 * len(names[0])) == names[0].encode() * 1_000
    assert bucket.get(names[0], 5) is None
    assert bucket.get("raw/none", 5) is None
    assert sorted(bucket.names()) == [(name, 1_000 * len(name)) for name in names]
    server.requests.clear()
    bucket.delete([*names[:6], "raw/none"])
    assert [request.method for request in server.requests] == ["POST"]
    assert [name for name, _ in bucket.names()] == names[6:]
    # Path style, which every server knows.
    assert set(server.objects) == {f"kb/notes/home1/{name}" for name in names[6:]}


def test_homes_that_share_a_bucket_stay_apart(server: S3Server) -> None:
    """A home lists its own objects, also where the names of others begin alike."""
    for folder in ("home1", "home10"):
        bucket_at(server, folder=folder).put(f"raw/{folder}", b"rope")
    assert list(bucket_at(server).names()) == [("raw/home1", 4)]
    bare = bucket_at(server, url=f"s3://{s3_server.BUCKET}")
    bare.put("raw/x", b"")
    assert list(bare.names()) == [("raw/x", 0)]


def answers(*faults: S3Answer) -> Callable[[S3Request], S3Answer | None]:
    """Answer with each of these in turn, and then as usual."""
    waiting = list(faults)
    return lambda _: waiting.pop(0) if waiting else None


ALL = 100


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (refusal(403, "InvalidAccessKeyId", KEY_ID), BucketRefused, "refuses the key (403 Inv"),
        (refusal(403, "AccessDenied"), BucketRefused, "refuses the key (403 AccessDenied)"),
        (S3Answer(403), BucketRefused, "refuses the key (403)"),
        (refusal(404, "NoSuchBucket"), BucketRefused, "there is no such bucket"),
        (refusal(301, "PermanentRedirect"), BucketRefused, "set content.region"),
        (refusal(400, "AuthorizationHeaderMalformed"), BucketRefused, "set content.region"),
        (refusal(403, "RequestTimeTooSkewed"), BucketRefused, "this machine's clock is wrong"),
        (refusal(501, "NotImplemented"), StoreUnreachable, "busy or fails (501 NotImplemented)"),
        (refusal(400, "InvalidRequest"), BucketRefused, "refuses the request (400 InvalidR"),
        (refusal(503, "SlowDown"), StoreUnreachable, "busy or fails (503 SlowDown)"),
        (S3Answer(500, b"<html>" + SECRET.encode()), StoreUnreachable, "busy or fails (500)"),
        (refusal(507, "XMinioStorageFull"), StoreFull, "507 XMinioStorageFull"),
        (refusal(400, "ExpiredToken"), BucketRefused, "has expired (400 ExpiredToken); renew it"),
        (refusal(403, "ExpiredToken"), BucketRefused, "has expired (403 ExpiredToken); renew it"),
        (refusal(400, "InvalidToken"), BucketRefused, "refuses the key (400 InvalidToken)"),
        (refusal(403, "QuotaExceeded"), StoreFull, "403 QuotaExceeded"),
        (refusal(400, "InvalidRegionName"), BucketRefused, "set content.region"),
        (refusal(400, "RequestTimeout"), StoreUnreachable, "busy or fails (400 RequestTimeout)"),
        (refusal(409, "OperationAborted"), StoreUnreachable, "busy or fails (409 OperationAb"),
    ],
)
@pytest.mark.parametrize("method", ["put", "get", "names", "delete"])
def test_each_refusal_is_one_clear_line(
    server: S3Server, method: str, answer: S3Answer, kind: type[KbError], words: str
) -> None:
    """Whatever is asked, the error names the bucket and the reason, and repeats nothing secret."""
    bucket = bucket_at(server)
    server.faults.append(answers(*[answer] * ALL))
    calls: dict[str, Callable[[], object]] = {
        "put": lambda: bucket.put("raw/a", b"x"),
        "get": lambda: bucket.get("raw/a", 1),
        "names": lambda: list(bucket.names()),
        "delete": lambda: bucket.delete(["raw/a"]),
    }
    with pytest.raises(kind) as told:
        calls[method]()
    said = str(told.value)
    assert words in said
    assert URL in said
    assert "\n" not in said
    assert KEY_ID not in said
    assert SECRET not in said
    assert told.value.__suppress_context__


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        ("AccessDenied", BucketRefused, "refuses the key (AccessDenied)"),
        ("InternalError", StoreUnreachable, "busy or fails (InternalError); try again"),
        ("InvalidObjectState", BucketRefused, "refuses the request (InvalidObjectState)"),
    ],
)
def test_an_object_that_is_not_removed(
    server: S3Server, code: str, kind: type[KbError], words: str
) -> None:
    """The answer to a removal of several is good, and says of one why it is still there."""
    place = "kb/notes/home1/raw"
    body = (
        f"<DeleteResult><Deleted><Key>{place}/b</Key></Deleted><Error><Key>{place}/a</Key>"
        f"<Code>{code}</Code><Message>{SECRET}</Message></Error></DeleteResult>"
    )
    answer = S3Answer(200, body.encode(), {"content-type": "application/xml"})
    server.faults.append(lambda asked: answer if asked.method == "POST" else None)
    with pytest.raises(kind) as told:
        bucket_at(server).delete(["raw/a", "raw/b"])
    assert words in str(told.value)
    assert SECRET not in str(told.value)


def test_what_passes_is_tried_again(server: S3Server) -> None:
    """A busy server is asked a few times, and not for ever."""
    server.faults.append(answers(refusal(503, "SlowDown"), refusal(500, "InternalError")))
    bucket_at(server).put("raw/a", b"x")
    assert len(server.requests) == 3
    server.faults[:] = [answers(*[refusal(503, "SlowDown")] * ALL)]
    server.requests.clear()
    with pytest.raises(StoreUnreachable):
        bucket_at(server).put("raw/b", b"x")
    assert len(server.requests) == 1 + bucket_module._RETRIES_MAX


def test_a_server_that_is_not_there(server: S3Server) -> None:
    """Nobody listens: said within seconds."""
    place = BucketPlace(url=URL, endpoint="http://127.0.0.1:9", folder="x")
    with pytest.raises(StoreUnreachable, match="its server cannot be reached"):
        Bucket(place).put("raw/a", b"x")


def test_a_server_that_hangs(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that does not come is given up after the limit."""
    monkeypatch.setattr(bucket_module, "_ANSWER_S", 1)
    monkeypatch.setattr(bucket_module, "_RETRY_S", 1)
    server.faults.append(answers(*[S3Answer(delay_s=3)] * ALL))
    with pytest.raises(StoreUnreachable, match="does not answer in time"):
        bucket_at(server).get("raw/a", 1)
    assert len(server.requests) <= 2


def test_a_clock_that_is_wrong(server: S3Server) -> None:
    """A signature of another time is refused, in words that say what to do."""
    server.clock_ahead_s = 3_600
    with pytest.raises(BucketRefused, match="this machine's clock is wrong; set it"):
        bucket_at(server).put("raw/a", b"x")


def test_the_environment_leads_nowhere_else(
    server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variables that other tools read change neither where bytes go nor whether they are signed."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    monkeypatch.setenv("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "true")
    monkeypatch.setenv("AWS_REGION", "elsewhere")
    monkeypatch.setenv("AWS_BUCKET", "elsewhere")
    monkeypatch.setenv("AWS_S3_EXPRESS", "true")
    monkeypatch.setenv("AWS_UNSIGNED_PAYLOAD", "true")
    bucket_at(server).put("raw/a", b"x")
    assert server.requests[-1].headers["x-amz-content-sha256"] != "UNSIGNED-PAYLOAD"
    assert "/us-east-1/s3/" in server.requests[-1].headers["authorization"]


def credentials_file(tmp_path: Path, secret: str = SECRET, profile: str = "default") -> Path:
    file = tmp_path / ".aws/credentials"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"[{profile}]\naws_access_key_id = {KEY_ID}\naws_secret_access_key={secret}\n")
    return file


def test_keys_are_found_as_other_tools_find_them(tmp_path: Path) -> None:
    """The environment comes first, then a profile of the shared file."""
    pair = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    assert find_key(pair, URL).token is None
    assert find_key({**pair, "AWS_SESSION_TOKEN": "c"}, URL).token == "c"
    credentials_file(tmp_path)
    assert find_key({}, URL).secret == SECRET
    named = credentials_file(tmp_path, "other%secret", "team")
    team = {"AWS_PROFILE": "team", "AWS_SHARED_CREDENTIALS_FILE": str(named)}
    assert find_key(team, URL).secret == "other%secret"
    assert "b" not in repr(AccessKey("a", "b", None)).removeprefix("AccessKey")


@pytest.mark.parametrize(
    ("env", "text", "words"),
    [
        ({}, None, "there is no key for it; set AWS_ACCESS_KEY_ID"),
        ({"AWS_ACCESS_KEY_ID": "a"}, None, "AWS_SECRET_ACCESS_KEY is not set"),
        ({"AWS_SECRET_ACCESS_KEY": "b"}, None, "AWS_ACCESS_KEY_ID is not set"),
        ({"AWS_PROFILE": "none"}, "[default]\n", "there is no key for it"),
        ({}, "[default]\naws_access_key_id = a\n", "there is no key for it"),
        ({}, "secret-canary without a section\n", "cannot be read"),
    ],
)
def test_a_key_that_is_not_there(
    tmp_path: Path, env: dict[str, str], text: str | None, words: str
) -> None:
    """It is said what is missing, and nothing of a file is repeated."""
    if text is not None:
        credentials_file(tmp_path).write_text(text)
    with pytest.raises(BucketRefused, match=words) as told:
        find_key(env, URL)
    assert "canary" not in str(told.value)


def test_a_key_of_a_file_is_used_alone(
    server: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A token that was left in the environment does not go with the key of a file."""
    for name in s3_server.ENVIRONMENT:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of another key")
    credentials_file(tmp_path)
    bucket_at(server).put("raw/a", b"x")
    assert "x-amz-security-token" not in server.requests[-1].headers


def test_a_key_that_changes_is_read_anew(
    server: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A process that was refused goes on once the file has the right key."""
    for name in s3_server.ENVIRONMENT:
        monkeypatch.delenv(name)
    credentials_file(tmp_path, "wrong")
    bucket = bucket_at(server)
    with pytest.raises(BucketRefused, match="SignatureDoesNotMatch"):
        bucket.put("raw/a", b"x")
    credentials_file(tmp_path)
    bucket.put("raw/a", b"x")


def test_a_token_of_a_passing_key_is_sent(
    server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys that end have a token, which is signed, too."""
    monkeypatch.setenv("AWS_SESSION_TOKEN", "passing")
    bucket_at(server).put("raw/a", b"x")
    assert server.requests[-1].headers["x-amz-security-token"] == "passing"


def test_without_the_library(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has not installed the extra is told which."""
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(UsageError, match=r"pip install 'kb-search\[s3\]'"):
        bucket_at(server).put("raw/a", b"x")


@pytest.mark.parametrize(
    ("url", "bucket", "prefix"),
    [
        ("s3://docs", "docs", "home1"),
        ("s3://docs/", "docs", "home1"),
        ("s3://my.docs/team/kb", "my.docs", "team/kb/home1"),
    ],
)
def test_places(url: str, bucket: str, prefix: str) -> None:
    """The objects of a home are in a folder below the prefix."""
    place = checked(BucketPlace(url=url, folder="home1"))
    assert (place.bucket, place.prefix) == (bucket, prefix)
    assert place.server == "https://s3.us-east-1.amazonaws.com"


@pytest.mark.parametrize(
    "url",
    ["docs", "s3://", "s3://Docs", "s3://a", "s3://docs/../x", "s3://docs//x", "s3://u:p@docs",
     "s3://docs/a b", "s3://docs?x=1", "https://docs", "s3://docs/%2e%2e"],
)  # fmt: skip
def test_what_is_no_place(url: str) -> None:
    """A bucket's address has letters, digits and a few signs, and leads upwards nowhere."""
    with pytest.raises(UsageError, match="a bucket is s3://NAME"):
        checked(BucketPlace(url=url))

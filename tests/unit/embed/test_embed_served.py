"""kb.intake.embed.served: batches, retries, wrong answers, and what nobody may read: the key."""

import logging
import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from embed_server import MODEL, PATHS, EmbeddingServer, embed_serving
from fakes import FakeClock
from llm_server import KEY, answered
from loopback import Answer, Route, moved, raw, reset

from kb.errors import EmbedError, ModelMissing
from kb.intake.embed.factory import make_embedder
from kb.intake.embed.served import make
from kb.model.embedder import EmbedderChoice, EmbedServer


@pytest.fixture(params=PATHS)
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddingServer]:
    with embed_serving(request.param) as running:
        yield running


def failure(server: EmbeddingServer, *script: Route, **settings: Any) -> EmbedError:
    """What embedding two texts ends with."""
    server.script = list(script)
    with pytest.raises(EmbedError) as caught:
        server.embedder(dim=48, **settings).embed_documents(["a", "b"])
    return caught.value


def test_texts_go_in_batches_and_come_back_in_order(server: EmbeddingServer) -> None:
    """With the model's name, and with the key in one header where there is one."""
    texts = [f"text number {number}" for number in range(70)]
    embedder = server.embedder()
    vectors = embedder.embed_documents(texts)
    np.testing.assert_allclose(vectors, server.hashing.embed_documents(texts), atol=1e-5)
    probe, *batches = server.inputs()
    assert len(probe) == 1
    assert [len(batch) for batch in batches] == [32, 32, 6]
    assert [text for batch in batches for text in batch] == texts
    for request in server.requests:
        assert request.path == PATHS[server.api]
        assert f'"model":"{MODEL}"'.encode() in request.body
        assert KEY.encode() not in request.body
        expected = f"Bearer {KEY}" if server.api == "openai" else None
        assert request.headers["authorization"] == expected


def test_a_busy_server_is_asked_again(server: EmbeddingServer) -> None:
    """After the time that it names, or a growing one; and no more than so many times."""
    busy = answered({"error": "slow down"}, 429, {"Retry-After": "7"})
    broken = answered({"error": "oops"}, 500)
    server.script = [busy, broken]
    vectors = server.embedder(dim=48).embed_documents(["a"])
    assert vectors.shape == (1, 48)
    assert server.naps.slept_s == [7.25, 0.75]
    assert len(server.requests) == 3
    error = failure(server, busy, broken, broken, broken)
    assert len(server.requests) == 6
    assert "the server failed (500): oops; tried 3 times" in str(error)
    assert server.base_url in str(error)
    # Somebody waits for a search.
    server.script = [broken, broken, broken]
    with pytest.raises(EmbedError, match="tried 2 times"):
        server.embedder(dim=48).embed_query("a")
    assert len(server.requests) == 8


def test_a_request_that_is_refused_is_not_repeated(server: EmbeddingServer) -> None:
    """Another try would not help; a redirect is not followed."""
    for script, words in (
        (answered({"error": "model not found"}, 404), "rejects the request (404): model not found"),
        (answered({"error": f"wrong key {KEY}"}, 401), "rejects the key (401)"),
        (moved("http://127.0.0.1:1/"), "set embed.base_url to the API's own address"),
        (Answer(b"<html>", 200, {"Content-Type": "text/html"}), "check that embed.base_url is"),
    ):
        before = len(server.requests)
        assert words in str(failure(server, script))
        assert len(server.requests) == before + 1


def test_answers_that_are_none(server: EmbeddingServer) -> None:
    """Not one of them becomes a vector, and none is asked for again."""
    row, other = [3.0] + [0.0] * 47, [0.0] * 47 + [2.0]
    huge = b"[1e999" + b",0" * 47 + b"]"
    wrong: list[tuple[Answer, str]] = [
        (server.gives([row]), "returned 1 vectors for 2 texts"),
        (server.gives([row, other, row]), "returned 3 vectors for 2 texts"),
        (server.gives([]), "returned 0 vectors for 2 texts"),
        (server.gives([row, []]), "vectors for 2 texts"),
        (server.gives([row[1:], other[1:]]), "vectors of length 47, and those of"),
        (server.gives([row, other[1:]]), "vectors of length 47, 48"),
        (server.gives([row, [0.0] * 48]), "a vector without a direction"),
        (server.gives([row, [None] * 48]), "not of the expected form"),
        (server.gives([row, "x"]), "not of the expected form"),
        (server.gives([row, [float("nan")] * 48]), "not JSON"),
        (answered(b'{"data": [' * 50_000), "the answer is not JSON"),
        (answered(b"garbage"), "the answer is not JSON"),
        (answered({}), "not of the expected form"),
        (answered(b""), "the answer is not JSON"),
    ]
    for answer, words in wrong:
        before = len(server.requests)
        assert words in str(failure(server, answer)), words
        assert len(server.requests) == before + 1
    number = server.gives([row, other]).body.replace(b"3.0", b"1e999")
    assert huge[:6] in number
    failure(server, answered(number))
    # As they should be, whatever their length was.
    server.script = [server.gives([row, other])]
    vectors = server.embedder(dim=48).embed_documents(["a", "b"])
    np.testing.assert_allclose(vectors, [[1.0] + [0.0] * 47, [0.0] * 47 + [1.0]])


def test_each_vector_is_of_its_text() -> None:
    """By the index; one that is doubled or missing tells nothing."""
    with embed_serving("openai") as server:
        rows = [{"index": 0, "embedding": [1.0] * 48}, {"index": 0, "embedding": [2.0] * 48}]
        for index in (0, 2, -1):
            rows[1]["index"] = index
            assert "which vector is of which" in str(failure(server, answered({"data": rows})))
        server.script = [answered({"data": [{"embedding": row["embedding"]} for row in rows]})]
        assert server.embedder(dim=48).embed_documents(["a", "b"]).shape == (2, 48)


def test_a_server_that_is_down(server: EmbeddingServer) -> None:
    """It is tried a few times within bounds; so is one that hangs up."""
    error = failure(server, reset, reset, raw(b"nonsense"), tries=3)
    assert "tried 3 times" in str(error)
    choice = EmbedderChoice(kind=server.api, model=MODEL)
    gone = make(choice, EmbedServer(base_url="http://127.0.0.1:9", tries=1, dim=48), {})
    assert gone.fingerprint == f"{server.api}:{MODEL}:48"
    with pytest.raises(EmbedError, match="cannot be reached; check that it runs"):
        gone.embed_query("a")


def test_the_key_is_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    """In no error, no chained one, no representation, and no log, whatever the server echoes."""
    caplog.set_level(logging.DEBUG)
    echo = {"error": {"message": f"your key {KEY} is wrong"}}
    headers = {"X-Echo": KEY, "Content-Type": "application/json"}
    scripts: list[Route] = [
        answered(echo, 401, headers),
        answered(echo, 400),
        answered(KEY.encode()),
        answered({"data": KEY, "embeddings": KEY}),
        Answer(b"x", 200, {"Content-Type": KEY}),
        reset,
    ]
    with embed_serving("openai") as server:
        for script in scripts:
            error = failure(server, script, tries=1)
            assert KEY not in "".join(traceback.format_exception(error)) + repr(error.fields)
        embedder = server.embedder(dim=48)
    assert KEY not in repr(vars(embedder)) + repr(vars(embedder._peer))
    assert KEY not in caplog.text
    assert KEY in str(server.requests[0].headers)


def test_where_a_key_may_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nowhere in the clear, nowhere that the settings do not name, and never as it was mistyped."""
    openai = EmbedderChoice(kind="openai", model="m")
    env = {"OPENAI_API_KEY": KEY}
    for url, words in (
        ("", "set embed.base_url in your own settings"),
        ("http://example.org/v1", "would carry the key unencrypted"),
        ("https://me:pass@example.org", "no URL with a user or password"),
        ("ftp://example.org", "is not an http:// or https:// URL"),
    ):
        with pytest.raises(ModelMissing) as caught:
            make(openai, EmbedServer(base_url=url), env)
        assert words in str(caught.value)
        assert KEY not in str(caught.value)
        assert "pass@" not in str(caught.value)
    with pytest.raises(ModelMissing, match="not a key") as caught:
        make(openai, EmbedServer(base_url="https://example.org"), {"OPENAI_API_KEY": "a b c"})
    assert "a b c" not in str(caught.value)
    with pytest.raises(ModelMissing, match="kb embedder set ollama:NAME"):
        make(EmbedderChoice(kind="ollama"), EmbedServer(), {})
    made = make(EmbedderChoice(kind="ollama", model="m"), EmbedServer(dim=3), env)
    assert made._peer.key is None
    assert made._url == "http://127.0.0.1:11434/api/embed"
    elsewhere = make(EmbedderChoice(kind="ollama", model="m"), EmbedServer(), {"OLLAMA_HOST": "x"})
    assert elsewhere._url == "http://x:11434/api/embed"
    monkeypatch.setenv("OLLAMA_HOST", "https://y.example")
    assert make_embedder(made._choice)._url == "https://y.example/api/embed"  # type: ignore[attr-defined]


def test_the_fingerprint_names_the_model_and_not_the_place() -> None:
    """Kind, name, length, prefixes; a length that is known is not asked for."""
    with embed_serving("ollama") as one, embed_serving("ollama", dim=32) as other:
        assert one.embedder().fingerprint == f"ollama:{MODEL}:48"
        assert other.embedder().fingerprint == f"ollama:{MODEL}:32"
        prefixed = one.embedder(dim=48, prefixes=("q: ", "p: "))
        assert prefixed.fingerprint == f"ollama:{MODEL}:48:'q: ''p: '"
        assert len(one.requests) == 1
        prefixed.embed_query("tea")
        prefixed.embed_documents(["tea"])
        assert one.inputs()[1:] == [["q: tea"], ["p: tea"]]
        # Another model under the same name.
        with pytest.raises(EmbedError, match="vectors of length 32, and those of"):
            other.embedder(dim=48).embed_query("tea")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("the lease passes", ["the", "leas", "e", "pass", "es"]),
        ("F28, 2026!", ["F", "28", ",", "202", "6", "!"]),
        ("天气 한국", ["天", "气", "한", "국"]),
        ("snake_case", ["snak", "e", "_", "case"]),
        (" \n\t", []),
    ],
)
def test_tokens_are_counted_by_a_rule(text: str, tokens: list[str]) -> None:
    """Without the server, whose tokenizer is not here."""
    choice = EmbedderChoice(kind="ollama", model="m")
    embedder = make(choice, EmbedServer(base_url="http://127.0.0.1:9"), {})
    assert [text[start:end] for start, end in embedder.token_spans(text)] == tokens
    assert embedder.count_tokens([text, text]) == [len(tokens)] * 2


def test_no_text_is_longer_than_the_settings_say(server: EmbeddingServer) -> None:
    """Long ones are cut here, since servers refuse them; empty ones are sent as a mark."""
    embedder = server.embedder(dim=48, tokens_max=32)
    embedder.embed_documents(["word " * 100_000, "", " \n", "x" * 10_000, "\ud800"])
    (sent,) = server.inputs()
    assert sent == [" ".join(["word"] * 32), ".", ".", "x" * 128, "\ufffd"]
    assert embedder.tokens_max == 32
    assert isinstance(server.clock, FakeClock)

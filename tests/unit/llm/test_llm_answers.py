"""What is asked of each API, and what its answers are read as."""

import json
import threading
from collections.abc import Iterator

import pytest
from llm_server import KEY, MODEL, PATHS, LlmServer, answered, llm_serving, streamed
from loopback import Answer, Handler, in_chunks

from kb import __version__
from kb.errors import BadAnswer, ModelRefused, ModelRejected, ModelUnavailable
from kb.knowledge.llm import Provider

CUT = {"ollama": "length", "anthropic": "max_tokens", "openai": "length"}
STREAM_TYPES = {
    "ollama": "application/json, application/ndjson, application/x-ndjson",
    "anthropic": "text/event-stream",
    "openai": "text/event-stream",
}


@pytest.fixture(params=PATHS)
def server(request: pytest.FixtureRequest) -> Iterator[LlmServer]:
    with llm_serving(request.param) as running:
        yield running


def asked_both_ways(provider: Provider) -> Iterator[str]:
    """The errors' own test: what each way of asking raises, as `class: message`."""
    for ask in (provider.complete, lambda system, user: "".join(provider.stream(system, user))):
        with pytest.raises(Exception) as caught:
            ask("S", "U")
        yield f"{type(caught.value).__name__}: {caught.value}"


def expected_payload(api: str, streamed: bool) -> dict[str, object]:
    user = {"role": "user", "content": "Was heißt 伊利?"}
    both = [{"role": "system", "content": "Be brief."}, user]
    if api == "ollama":
        return {"model": MODEL, "messages": both, "stream": streamed}
    stream = {"stream": True} if streamed else {}
    if api == "openai":
        return {"model": MODEL, "messages": both, **stream}
    head = {"model": MODEL, "max_tokens": 4096, "system": "Be brief."}
    return {**head, "messages": [user], **stream}


def expected_headers(server: LlmServer, streamed: bool, length: int) -> dict[str, str]:
    own = {
        "ollama": {},
        "anthropic": {"x-api-key": KEY, "anthropic-version": "2023-06-01"},
        "openai": {"authorization": f"Bearer {KEY}"},
    }[server.api]
    return own | {
        "host": f"127.0.0.1:{server.loopback.port}",
        "accept": STREAM_TYPES[server.api] if streamed else "application/json",
        "accept-encoding": "identity",
        "connection": "keep-alive",
        "content-length": str(length),
        "content-type": "application/json",
        "user-agent": f"kb/{__version__}",
    }


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_question_is_sent_as_the_api_wants_it(server: LlmServer, is_streamed: bool) -> None:
    """Path, headers and payload are those of the API, and there is nothing else in them."""
    provider = server.provider()
    if is_streamed:
        server.script = [server.streams("a", "b")]
        assert list(provider.stream("Be brief.", "Was heißt 伊利?")) == ["a", "b"]
    else:
        server.script = [server.says("ab")]
        assert provider.complete("Be brief.", "Was heißt 伊利?") == "ab"
    (sent,) = server.requests
    assert sent.path == PATHS[server.api]
    assert server.asked() == [expected_payload(server.api, is_streamed)]
    headers = {name.lower(): value for name, value in sent.headers.items()}
    assert headers == expected_headers(server, is_streamed, len(sent.body))


def test_a_provider_says_its_name(server: LlmServer) -> None:
    """Provider and model; nothing is asked for it."""
    assert server.provider().name == f"{server.api}:{MODEL}"
    assert server.requests == []


def test_an_answer_comes_as_it_was_said(server: LlmServer) -> None:
    """Scripts, line ends and white space at the ends stay."""
    text = '  ```json\n{"a": "伊利 \\n"}\r\n```\u2028 '
    server.script = [server.says(text), server.streams(*text)]
    provider = server.provider()
    assert provider.complete("S", "U") == text
    assert "".join(provider.stream("S", "U")) == text


def test_a_stream_comes_piece_by_piece(server: LlmServer) -> None:
    """The first piece is there before the server has sent the rest, cut as it may be."""
    whole = server.streams("ä", "b").body
    cut = whole.index("ä".encode() if b"\xc3" in whole else b"\\u00e4") + 1
    sent: list[str] = []
    first_read = threading.Event()

    def parts() -> Iterator[bytes]:
        yield whole[:cut]
        at = whole.index(b"\n", whole.index(b"\n", cut) + 1) + 1
        yield whole[cut:at]
        if first_read.wait(120):
            sent.append("rest")
            yield whole[at:]

    server.script = [in_chunks(parts(), server.streams("x").headers)]
    pieces = server.provider().stream("S", "U")
    assert next(pieces) == "ä"
    assert sent == []
    first_read.set()
    assert list(pieces) == ["b"]


def test_a_stream_that_is_dropped_hangs_up(server: LlmServer) -> None:
    """Who wants no more pieces closes the connection under the server."""
    broken = threading.Event()
    whole = server.streams("a" * 10_000)
    first = whole.body[: whole.body.index(b"\n", whole.body.index(b"a" * 10_000)) + 2]

    def endless(handler: Handler) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {whole.headers['Content-Type']}\r\n\r\n"
        try:
            handler.wfile.write(head.encode() + first)
            while not handler.server.stopping.wait(0.01):
                handler.wfile.write(b"\n" * 1000)
        except OSError:
            broken.set()

    server.script = [endless]
    pieces = server.provider().stream("S", "U")
    assert next(pieces) == "a" * 10_000
    pieces.close()  # type: ignore[attr-defined]
    assert broken.wait(120)


def test_nothing_is_asked_before_a_piece_is_wanted(server: LlmServer) -> None:
    """A stream that nobody reads costs nothing."""
    server.provider().stream("S", "U")
    assert server.requests == []


def test_lone_surrogates_do_not_stop_a_question(server: LlmServer) -> None:
    """What no UTF-8 can carry is sent as a question mark."""
    server.script = [server.says("ok")]
    server.provider().complete("a\ud800", "b\udfffc")
    assert "a?" in json.dumps(server.asked())
    assert "b?c" in json.dumps(server.asked())


def test_a_blank_answer_is_an_error(server: LlmServer) -> None:
    """Nothing, or nothing but white space, is no answer."""
    for text in ("", " \n"):
        server.script = [server.says(text), server.streams(text)]
        for said in asked_both_ways(server.provider()):
            assert said.startswith("BadAnswer: ")
            assert said.endswith("the answer is empty")
    assert len(server.requests) == 4


def test_an_answer_that_was_cut_short_is_an_error(server: LlmServer) -> None:
    """The longest length is no end; the pieces of a stream came all the same."""
    end = CUT[server.api]
    server.script = [server.says("half", end), server.streams("half", end=end)]
    for said in asked_both_ways(server.provider()):
        assert said.startswith("BadAnswer: ")
        assert "cut short" in said
    pieces = server.provider().stream("S", "U")
    assert next(pieces) == "half"
    with pytest.raises(BadAnswer, match="cut short"):
        next(pieces)


def test_an_answer_without_end_is_not_whole(server: LlmServer) -> None:
    """A stream that just stops raises, after the pieces that came, and is not begun anew."""
    server.script = [server.breaks_off("ha", "lf")]
    pieces = server.provider().stream("S", "U")
    assert [next(pieces), next(pieces)] == ["ha", "lf"]
    with pytest.raises(ModelUnavailable, match="the answer broke off; try again later"):
        next(pieces)
    assert len(server.requests) == 1


def test_a_stream_that_breaks_off_before_a_piece_is_asked_again(server: LlmServer) -> None:
    """As long as nothing was handed on, another try changes nothing for the caller."""
    server.script = [server.breaks_off(), server.streams("a")]
    assert list(server.provider().stream("S", "U")) == ["a"]
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "not JSON"),
        (b'{"half": ', "not JSON"),
        (b"<html>hello</html>", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b'{"x": ' + b"[" * 100_000, "not JSON"),
        (b"{}", "is not of the expected form: Object missing required field"),
        (b"[]", "is not of the expected form: Expected `object`, got `array`"),
        (b"null", "is not of the expected form"),
    ],
)
def test_what_is_no_answer_of_the_api_is_named(server: LlmServer, body: bytes, said: str) -> None:
    """Broken JSON and missing fields are told apart; neither is asked for again."""
    server.script = [answered(body)]
    with pytest.raises(BadAnswer, match=said):
        server.provider().complete("S", "U")
    assert len(server.requests) == 1


@pytest.mark.parametrize("line", [b"{oops", b"[1]", b'"\xff"'])
def test_a_message_that_cannot_be_read_ends_a_stream(server: LlmServer, line: bytes) -> None:
    """One broken message in a stream is an error, not a gap."""
    server.script = [streamed(server.api, [line])]
    with pytest.raises(BadAnswer):
        list(server.provider().stream("S", "U"))
    assert len(server.requests) == 1


def test_another_type_is_no_answer(server: LlmServer) -> None:
    """A page of some other service is named as what it is, with what to look at."""
    server.script = [Answer(b"<html>", headers={"Content-Type": "text/html; charset=utf-8"})]
    for said in asked_both_ways(server.provider()):
        assert said.startswith("BadAnswer: ")
        assert "the answer is text/html, not " in said
        assert "llm.base_url" in said


def test_a_server_that_says_no_type_is_read(server: LlmServer) -> None:
    """Where Content-Type is missing, the body decides."""
    server.script = [Answer(server.says("ok").body), Answer(server.streams("ok").body)]
    provider = server.provider()
    assert provider.complete("S", "U") == "ok"
    assert list(provider.stream("S", "U")) == ["ok"]


def test_a_packed_answer_is_not_unpacked(server: LlmServer) -> None:
    """Nothing packed was asked for, so no body grows here."""
    body = server.says("ok")
    server.script = [Answer(body.body, 200, {**body.headers, "Content-Encoding": "gzip"})]
    with pytest.raises(BadAnswer, match="compressed"):
        server.provider().complete("S", "U")


@pytest.fixture
def anthropic() -> Iterator[LlmServer]:
    with llm_serving("anthropic") as running:
        yield running


@pytest.fixture
def openai() -> Iterator[LlmServer]:
    with llm_serving("openai") as running:
        yield running


def test_anthropic_blocks_of_text_are_joined(anthropic: LlmServer) -> None:
    """Other blocks are passed over, and the answer length is the one that was set."""
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "x"},
        {"type": "text", "text": "a"},
        {"type": "tool_use", "id": "1", "name": "t", "input": {}},
        {"type": "text", "text": "b"},
    ]
    anthropic.script = [answered({"content": blocks, "stop_reason": "end_turn"})]
    assert anthropic.provider(answer_tokens_max=7).complete("S", "U") == "ab"
    assert anthropic.asked()[0]["max_tokens"] == 7


def test_anthropic_streams_text_alone(anthropic: LlmServer) -> None:
    """Deltas of other kinds and events that are not known are passed over."""
    other = {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "hm"}}
    text = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}}
    end = {"type": "message_stop"}
    anthropic.script = [streamed("anthropic", [{"type": "new_event", "x": 1}, other, text, end])]
    assert list(anthropic.provider().stream("S", "U")) == ["a"]


def test_anthropic_refusals_are_told(anthropic: LlmServer) -> None:
    """The reason why an answer ended decides, whatever text it has."""
    anthropic.script = [anthropic.says("", "refusal"), anthropic.streams(end="refusal")]
    for said in asked_both_ways(anthropic.provider()):
        assert said.startswith("ModelRefused: ")
        assert "the model declined to answer" in said


@pytest.mark.parametrize(
    ("kind", "error"),
    [("invalid_request_error", ModelRejected), ("overloaded_error", ModelUnavailable)],
)
def test_anthropic_errors_inside_a_stream(
    anthropic: LlmServer, kind: str, error: type[Exception]
) -> None:
    """An event may tell of an error; only one that may pass is asked again."""
    event = {"type": "error", "error": {"type": kind, "message": "no\nway"}}
    anthropic.script = [streamed("anthropic", [event])]
    with pytest.raises(error, match=rf"the server failed \({kind}\): no way"):
        list(anthropic.provider().stream("S", "U"))
    assert len(anthropic.requests) == (3 if error is ModelUnavailable else 1)


def test_openai_refusals_are_quoted(openai: LlmServer) -> None:
    """The field in which a model declines is told, whole or in pieces."""
    message = {"role": "assistant", "content": None, "refusal": "I cannot."}
    deltas = [{"refusal": "I can"}, {"refusal": "not."}]
    parts = [{"choices": [{"delta": one, "finish_reason": None}]} for one in deltas]
    openai.script = [
        answered({"choices": [{"message": message, "finish_reason": "stop"}]}),
        streamed("openai", [*parts, b"[DONE]"]),
    ]
    for said in asked_both_ways(openai.provider()):
        assert said.startswith("ModelRefused: ")
        assert said.endswith("the model declined to answer: I cannot.")


def test_openai_filtered_answers_are_refusals(openai: LlmServer) -> None:
    """What a filter took away is no answer."""
    openai.script = [
        openai.says("a", "content_filter"),
        openai.streams("a", end="content_filter"),
    ]
    assert all(said.startswith("ModelRefused: ") for said in asked_both_ways(openai.provider()))


def test_openai_without_choices_is_no_answer(openai: LlmServer) -> None:
    """An empty list is named as such."""
    openai.script = [answered({"choices": []})]
    with pytest.raises(BadAnswer, match="no choices"):
        openai.provider().complete("S", "U")


def test_openai_may_leave_out_the_end_mark(openai: LlmServer) -> None:
    """The reason why it finished is an end as well; servers that speak this API differ."""
    part = {"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}
    openai.script = [streamed("openai", [part])]
    assert list(openai.provider().stream("S", "U")) == ["a"]


def test_openai_errors_inside_a_stream(openai: LlmServer) -> None:
    """A chunk may be an error, with or without a kind."""
    openai.script = [streamed("openai", [{"error": {"message": "bad", "type": None}}])]
    with pytest.raises(ModelRejected, match=r"the server failed \(error\): bad"):
        list(openai.provider().stream("S", "U"))


def test_ollama_errors_inside_a_stream() -> None:
    """A line may be an error; the model may have been unloaded, so it is asked again."""
    with llm_serving("ollama") as ollama:
        ollama.script = [streamed("ollama", [{"error": "out of memory"}]), ollama.streams("a")]
        assert list(ollama.provider().stream("S", "U")) == ["a"]
        ollama.script = [streamed("ollama", [{"error": "out of memory"}])]
        with pytest.raises(ModelUnavailable, match="out of memory"):
            list(ollama.provider().stream("S", "U"))


def test_a_refusal_is_of_its_own_class() -> None:
    """Callers can tell a model that declines from one that fails."""
    assert not issubclass(ModelRefused, ModelRejected | ModelUnavailable | BadAnswer)

"""The records that settings are read into, one to a section."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from kb import __version__
from kb.model.doc import Visibility
from kb.model.embedder import EmbedderKind

_Positive = Annotated[int, Meta(ge=1)]
_NotNegative = Annotated[int, Meta(ge=0)]
_Share = Annotated[float, Meta(ge=0.0, le=1.0)]
_Pattern = Annotated[str, Meta(min_length=1, max_length=4_096)]
_Patterns = Annotated[tuple[_Pattern, ...], Meta(max_length=256)]


class IngestSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is taken in."""

    file_bytes_max: _Positive = 64 << 20
    extensions: tuple[str, ...] = ("md", "markdown", "txt", "text", "html", "htm", "xhtml", "pdf")
    parse_cpu_s: _Positive = 60
    parse_memory_bytes: _Positive = 2 << 30


class ChunkSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How passages are cut, in tokens of the embedding model."""

    tokens_max: Annotated[int, Meta(ge=32, le=8192)] = 256
    overlap_tokens: _NotNegative = 32
    """At most a quarter of tokens_max."""

    def __post_init__(self) -> None:
        """Raise ValueError where the overlap would eat the passage."""
        if self.overlap_tokens > self.tokens_max // 4:
            raise ValueError("overlap_tokens is over a quarter of tokens_max")


class EntrySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How passages of entries are cut, in tokens of the model, which may read fewer."""

    tokens_max: Annotated[int, Meta(ge=32, le=8192)] = 512
    overlap_tokens: _NotNegative = 50
    """At most a quarter of tokens_max."""

    def __post_init__(self) -> None:
        """Raise ValueError where the overlap would eat the passage."""
        if self.overlap_tokens > self.tokens_max // 4:
            raise ValueError("overlap_tokens is over a quarter of tokens_max")


class EmbedSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which model embeds; an empty `model` is the built-in one."""

    kind: EmbedderKind = "onnx"
    model: str = ""
    threads: _NotNegative = 0
    """0 takes every core."""
    query_prefix: str = ""
    passage_prefix: str = ""
    scripts: tuple[str, ...] = ()
    """Scripts that the model reads, where the model does not say so itself."""


class WorkSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the worker pool works."""

    threads: Annotated[int, Meta(ge=1, le=64)] = 2
    lease_ms: Annotated[int, Meta(ge=1000)] = 120_000
    idle_ms: Annotated[int, Meta(ge=10)] = 200


class SearchSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How candidates become hits."""

    fusion: Literal["spaced", "plain"] = "spaced"
    rrf_k: _Positive = 60
    lexical_weight: _Share = 0.5
    lexical_top_share: _Share = 0.2
    """Of what a passage with all of the words could score: less than that is no full hit."""
    feedback_passages: _NotNegative = 3
    """The best so far that the dense leg moves its query towards; 0 for none."""
    feedback_weight: _Share = 0.2
    candidates: _Positive = 200
    """Candidates that each leg brings, or k where that is more."""
    mmr_similarity: _Share = 0.95
    """Passages at least this alike can crowd each other out."""
    mmr_crowd: _Positive = 2
    """How many alike may stand before the next one has to wait."""
    entity_boost: Annotated[float, Meta(ge=1.0)] = 1.5
    query_chars_max: _Positive = 8_192


class IndexSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the caches are kept."""

    dense_mode: Literal["auto", "exact", "hnsw"] = "auto"
    crossover_rows: _Positive = 1_000_000
    lock_wait_ms: _NotNegative = 10_000


class FetchSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may be fetched, and how much of it."""

    allow: tuple[str, ...] = ()
    """Hosts, addresses and networks that are fetched from although they are not public, with
    `:port` or without."""
    bytes_max: Annotated[int, Meta(ge=1)] = 32 << 20
    """Of one page, unpacked."""
    total_s: Annotated[float, Meta(gt=0, le=3600)] = 30.0
    """For one page with its redirects."""
    connect_s: Annotated[float, Meta(gt=0, le=3600)] = 10.0
    hops_max: Annotated[int, Meta(ge=0)] = 5
    user_agent: Annotated[str, Meta(pattern=r"^[!-~]([ -~]*[!-~])?\Z")] = f"kb/{__version__}"
    robots: bool = True
    """Whether robots.txt is respected where links are followed."""


class LlmSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which language model is asked, and how long it may take. Keys are no settings."""

    provider: Literal["none", "ollama", "anthropic", "openai"] = "none"
    model: Annotated[str, Meta(max_length=200)] = ""
    base_url: Annotated[str, Meta(max_length=2_000)] = ""
    """Empty is the provider's own."""
    timeout_s: Annotated[float, Meta(gt=0, le=3600)] = 120.0
    """Without a word from the server; `tries` times that for a question as a whole."""
    tries: Annotated[int, Meta(ge=1, le=10)] = 3
    answer_tokens_max: Annotated[int, Meta(ge=1, le=1_000_000)] = 4_096
    """For anthropic, which wants to be told."""


class CompactSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What compaction may take away."""

    grace_min: _NotNegative = 60
    model_days: _NotNegative = 7
    """How long `kb embedder set --rollback` can bring back the model before."""
    tombstone_days: _NotNegative = 30


class PackSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose packs are trusted."""

    trusted_keys: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^[A-Za-z0-9+/]{43}=\Z")], ...], Meta(max_length=256)
    ] = ()
    """Public keys in base64: what they signed is taken without a warning."""


TopicAuthor = Literal["user", "project", "stranger"]


class TopicSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A topic that can be learned: a folder whose files are its subjects."""

    enable: bool = True
    title: Annotated[str, Meta(pattern=r"\S", max_length=200)] | None = None
    introduction: Annotated[str, Meta(max_length=2_000)] | None = None
    """One sentence, for the list of topics."""
    description: Annotated[str, Meta(max_length=8_000)] | None = None
    subjects: Annotated[str, Meta(pattern=r"\A[^\0]+\Z")] = ""
    """The folder. A topic that is enabled must have one."""
    learned: _Patterns = ()
    """Slugs and globs of subjects that the system prompt holds from the start."""
    disabled: _Patterns = ()
    """Slugs and globs of subjects that nobody can learn."""
    index: bool = True
    """Whether searches find its subjects too."""
    visibility: Visibility = "private"
    """Who may learn it and find its subjects; private is for the home's own user."""
    defined_at: str = ""
    """Where `subjects` was said. `load` fills in this and the next; no layer may."""
    defined_by: TopicAuthor = "user"
    """Whose files say it; `stranger`, where they come with a project that is not trusted."""


FILLED_IN: Final = ("defined_at", "defined_by")
TOPIC_KEYS: Final = tuple(k for k in TopicSettings.__struct_fields__ if k not in FILLED_IN)
"""What a layer may say of a topic."""


class NotebookSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where notes are kept."""

    path: Annotated[str, Meta(pattern=r"\A[^\0]*\Z", max_length=4_096)] = ""
    """The folder, named from the home where it is not absolute; empty is `notebook`."""
    push: bool = False
    """Whether its branch is pushed to its `origin` after commits."""
    token_host: Annotated[
        str, Meta(pattern=r"\A(?:\[[0-9A-Fa-f:.]+\]|[\w.-]*)(?::[0-9]{1,5})?\Z", max_length=300)
    ] = ""
    """The one host, as HOST or HOST:PORT, that may have KB_NOTEBOOK_TOKEN when it asks for it."""


class ServeSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where `kb serve` listens, and what it lets in."""

    host: Annotated[str, Meta(min_length=1, max_length=255)] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535)] = 7777
    """0 takes a free one."""
    hosts: Annotated[tuple[str, ...], Meta(max_length=64)] = ()
    """Names that requests may ask for, beside those of this machine and `host`; no port."""
    origins: Annotated[tuple[str, ...], Meta(max_length=64)] = ()
    """Other sites whose pages may ask from a browser, as `https://example.org`."""
    body_bytes_max: Annotated[int, Meta(ge=1, le=64 << 20)] = 1 << 20
    header_bytes_max: Annotated[int, Meta(ge=1_024, le=1 << 20)] = 32 << 10
    concurrency_max: Annotated[int, Meta(ge=1, le=1_000)] = 32
    """Requests that are worked on at once; others are told to come again."""
    long_max: Annotated[int, Meta(ge=1, le=1_000)] = 8
    """As many again that may wait for a language model, a page or a parser."""
    connections_max: Annotated[int, Meta(ge=1, le=10_000)] = 256
    streams_max: Annotated[int, Meta(ge=1, le=10_000)] = 64
    """Answers at once that come piece by piece; they are counted apart from the other requests."""
    stream_s: Annotated[float, Meta(gt=0, le=86_400)] = 600.0
    """How long one of them lasts."""
    upload_bytes_max: Annotated[int, Meta(ge=1, le=1 << 30)] = 64 << 20
    """Largest file that is handed in."""
    head_s: Annotated[float, Meta(gt=0, le=3600)] = 10.0
    """How long a request may take to say what it wants."""
    body_s: Annotated[float, Meta(gt=0, le=3600)] = 30.0
    unread_s: Annotated[float, Meta(gt=0, le=3600)] = 30.0
    """How long an answer waits for its reader."""
    idle_s: Annotated[int, Meta(ge=1, le=3600)] = 5
    """How long a connection is kept between two requests."""


class ClientSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which server the command line asks, where it is to ask one."""

    server: Annotated[str, Meta(max_length=2_000)] = ""
    """Its address; empty is the homes on this machine."""
    token: Annotated[str, Meta(max_length=1_000)] = ""
    """KB_TOKEN comes before it."""
    insecure: bool = False
    """Whether a token may be sent over plain http to another machine."""
    timeout_s: Annotated[float, Meta(gt=0, le=3600)] = 30.0
    """Without a word from the server, and for an answer as a whole where nothing is uploaded."""

    def __repr__(self) -> str:
        """Without the token, which is for nobody to read."""
        return f"ClientSettings(server={self.server!r})"


class KbSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be learned."""

    topic: dict[str, TopicSettings] = msgspec.field(default_factory=dict)
    """By id, in the order in which the layers name them first."""


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that can be set."""

    ingest: IngestSettings = IngestSettings()
    chunk: ChunkSettings = ChunkSettings()
    entry: EntrySettings = EntrySettings()
    embed: EmbedSettings = EmbedSettings()
    work: WorkSettings = WorkSettings()
    search: SearchSettings = SearchSettings()
    index: IndexSettings = IndexSettings()
    fetch: FetchSettings = FetchSettings()
    compact: CompactSettings = CompactSettings()
    llm: LlmSettings = LlmSettings()
    pack: PackSettings = PackSettings()
    notebook: NotebookSettings = NotebookSettings()
    serve: ServeSettings = ServeSettings()
    client: ClientSettings = ClientSettings()
    kb: KbSettings = KbSettings()

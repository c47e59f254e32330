"""The records of the settings, one for each section. Field names are the settings' keys."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from kb import __version__
from kb.model.doc import Visibility

_Positive = Annotated[int, Meta(ge=1)]
_NotNegative = Annotated[int, Meta(ge=0)]
_Share = Annotated[float, Meta(ge=0.0, le=1.0)]
_Pattern = Annotated[str, Meta(min_length=1, max_length=4_096)]
_PluginName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z", max_length=100)]
_Patterns = Annotated[tuple[_Pattern, ...], Meta(max_length=256)]


EMBEDDER_KINDS: Final = ("onnx", "sentence-transformers", "hashing")
LLM_PROVIDERS: Final = ("none", "ollama", "anthropic", "openai")
EXTENSIONS: Final = (
    *("md", "markdown", "mdown", "mdwn", "mkd", "mdx", "qmd", "rmd"),
    *("txt", "text", "htm", "html", "shtml", "xhtml", "xht", "pdf"),
)
"""Of the formats that kb itself reads."""


class IngestSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits and file types of ingest."""

    file_bytes_max: _Positive = 64 << 20
    extensions: tuple[str, ...] = EXTENSIONS
    """Of files that are taken from folders. As long as it is not set, those of plugins, too."""
    parse_cpu_s: _Positive = 30
    """At the start of a document; as much again for each 100 pages that were read of it."""
    parse_memory_bytes: _Positive = 2 << 30

    @property
    def folder_extensions(self) -> tuple[str, ...]:
        """The extensions that were set; empty for those of every format that has a parser."""
        return () if self.extensions == EXTENSIONS else self.extensions


class ChunkSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sizes of chunks, in tokens of the embedding model."""

    tokens_max: Annotated[int, Meta(ge=32, le=8192)] = 256
    overlap_tokens: _NotNegative = 32
    """At most a quarter of tokens_max."""

    def __post_init__(self) -> None:
        """Raise ValueError if the overlap is over a quarter of a chunk."""
        if self.overlap_tokens > self.tokens_max // 4:
            raise ValueError("overlap_tokens is over a quarter of tokens_max")


class EntrySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sizes of chunks of entries, in tokens of the model, whose own limit may be lower."""

    tokens_max: Annotated[int, Meta(ge=32, le=8192)] = 512
    overlap_tokens: _NotNegative = 50
    """At most a quarter of tokens_max."""

    def __post_init__(self) -> None:
        """Raise ValueError if the overlap is over a quarter of a chunk."""
        if self.overlap_tokens > self.tokens_max // 4:
            raise ValueError("overlap_tokens is over a quarter of tokens_max")


class EmbedSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The embedding model; an empty `model` is the built-in one."""

    kind: _PluginName = "onnx"
    """onnx, sentence-transformers, hashing, or the name of a plugin."""
    model: str = ""
    threads: _NotNegative = 0
    """0 uses every core."""
    query_prefix: str = ""
    passage_prefix: str = ""
    scripts: tuple[str, ...] = ()
    """Scripts that the model can read, if the model does not declare them itself."""


class WorkSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The worker pool."""

    threads: Annotated[int, Meta(ge=1, le=64)] = 2
    lease_ms: Annotated[int, Meta(ge=1000)] = 120_000
    idle_ms: Annotated[int, Meta(ge=10)] = 200


class SearchSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How candidates are ranked and become hits."""

    fusion: Literal["spaced", "plain"] = "spaced"
    rrf_k: _Positive = 60
    lexical_weight: _Share = 0.5
    lexical_top_share: _Share = 0.2
    """Share of the highest possible lexical score below which a chunk is no full hit."""
    feedback_passages: _NotNegative = 3
    """How many of the best chunks the dense leg moves its query towards; 0 for none."""
    feedback_weight: _Share = 0.2
    candidates: _Positive = 200
    """Candidates of each leg; k if that is more."""
    mmr_similarity: _Share = 0.95
    """Cosine similarity from which chunks count as alike."""
    mmr_crowd: _Positive = 2
    """How many chunks that are alike may follow before the next one is moved back."""
    entity_boost: Annotated[float, Meta(ge=1.0)] = 1.5
    query_chars_max: _Positive = 8_192


class IndexSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The lexical and dense caches."""

    dense_mode: Literal["auto", "exact", "hnsw"] = "auto"
    crossover_rows: _Positive = 1_000_000
    lock_wait_ms: _NotNegative = 10_000


class FetchSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which web pages may be fetched, and the limits of a fetch."""

    allow: tuple[str, ...] = ()
    """Hosts, addresses and networks that may be fetched from although they are not public, with or
    without `:port`."""
    bytes_max: Annotated[int, Meta(ge=1)] = 32 << 20
    """Of one page, after decompression."""
    total_s: Annotated[float, Meta(gt=0, le=3600)] = 30.0
    """For one page including its redirects."""
    connect_s: Annotated[float, Meta(gt=0, le=3600)] = 10.0
    hops_max: Annotated[int, Meta(ge=0)] = 5
    user_agent: Annotated[str, Meta(pattern=r"^[!-~]([ -~]*[!-~])?\Z")] = f"kb/{__version__}"
    robots: bool = True
    """Whether robots.txt is respected when links are followed."""


class LlmSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The language model and its time limits. API keys are not settings."""

    provider: _PluginName = "none"
    """none, ollama, anthropic, openai, or the name of a plugin."""
    model: Annotated[str, Meta(max_length=200)] = ""
    base_url: Annotated[str, Meta(max_length=2_000)] = ""
    """Empty is the provider's own URL."""
    timeout_s: Annotated[float, Meta(gt=0, le=3600)] = 120.0
    """Longest silence of the server; a question as a whole may take `tries` times that."""
    tries: Annotated[int, Meta(ge=1, le=10)] = 3
    answer_tokens_max: Annotated[int, Meta(ge=1, le=1_000_000)] = 4_096
    """For anthropic, which requires a limit."""


class CompactSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long compaction keeps what is no longer needed."""

    grace_min: _NotNegative = 60
    model_days: _NotNegative = 7
    """How long `kb embedder set --rollback` can restore the previous model."""
    tombstone_days: _NotNegative = 30


class PackSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The signers whose packs are trusted."""

    trusted_keys: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^[A-Za-z0-9+/]{43}=\Z")], ...], Meta(max_length=256)
    ] = ()
    """Public keys in base64; packs that they signed are accepted without a warning."""


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
    """Slugs and globs of subjects that the system prompt includes from the start."""
    disabled: _Patterns = ()
    """Slugs and globs of subjects that cannot be learned."""
    index: bool = True
    """Whether searches find its subjects, too."""
    visibility: Visibility = "private"
    """Who may learn it and find its subjects; private is for the home's own user."""
    defined_at: str = ""
    """File and line of `subjects`. `load` sets this and `defined_by`; no layer may."""
    defined_by: TopicAuthor = "user"
    """Whose file defines it; `stranger` for a project that is not trusted."""


FILLED_IN: Final = ("defined_at", "defined_by")
TOPIC_KEYS: Final = tuple(k for k in TopicSettings.__struct_fields__ if k not in FILLED_IN)
"""The keys of a topic that a layer may set."""


class NotebookSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The notebook's folder and its remote."""

    path: Annotated[str, Meta(pattern=r"\A[^\0]*\Z", max_length=4_096)] = ""
    """The folder, relative to the home unless absolute; empty is `notebook`."""
    push: bool = False
    """Whether its branch is pushed to its `origin` after commits."""
    token_host: Annotated[
        str, Meta(pattern=r"\A(?:\[[0-9A-Fa-f:.]+\]|[\w.-]*)(?::[0-9]{1,5})?\Z", max_length=300)
    ] = ""
    """The one host, as HOST or HOST:PORT, that KB_NOTEBOOK_TOKEN is sent to on request."""


class ServeSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where `kb serve` listens, and the limits of its requests."""

    host: Annotated[str, Meta(min_length=1, max_length=255)] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535)] = 7777
    """0 takes a free port."""
    hosts: Annotated[tuple[str, ...], Meta(max_length=64)] = ()
    """Host names that requests may use besides those of this machine and `host`; without port."""
    origins: Annotated[tuple[str, ...], Meta(max_length=64)] = ()
    """Other sites whose pages may send requests from a browser, such as `https://example.org`."""
    body_bytes_max: Annotated[int, Meta(ge=1, le=64 << 20)] = 1 << 20
    header_bytes_max: Annotated[int, Meta(ge=1_024, le=1 << 20)] = 32 << 10
    concurrency_max: Annotated[int, Meta(ge=1, le=1_000)] = 32
    """Requests processed at once; others are told to retry."""
    long_max: Annotated[int, Meta(ge=1, le=1_000)] = 8
    """Additional requests that may wait for a language model, a page or a parser."""
    connections_max: Annotated[int, Meta(ge=1, le=10_000)] = 256
    streams_max: Annotated[int, Meta(ge=1, le=10_000)] = 64
    """Streamed responses at once; they are counted separately from other requests."""
    stream_s: Annotated[float, Meta(gt=0, le=86_400)] = 600.0
    """How long a streamed response lasts."""
    upload_bytes_max: Annotated[int, Meta(ge=1, le=1 << 30)] = 64 << 20
    """Largest uploaded file."""
    head_s: Annotated[float, Meta(gt=0, le=3600)] = 10.0
    """How long a client may take to send the request head."""
    body_s: Annotated[float, Meta(gt=0, le=3600)] = 30.0
    unread_s: Annotated[float, Meta(gt=0, le=3600)] = 30.0
    """How long a response waits for its reader."""
    idle_s: Annotated[int, Meta(ge=1, le=3600)] = 5
    """How long a connection stays open between two requests."""


class ClientSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The server that the command line sends its requests to, if any."""

    server: Annotated[str, Meta(max_length=2_000)] = ""
    """Its URL; empty for the homes on this machine."""
    token: Annotated[str, Meta(max_length=1_000)] = ""
    """KB_TOKEN takes precedence."""
    insecure: bool = False
    """Whether a token may be sent over plain http to another machine."""
    timeout_s: Annotated[float, Meta(gt=0, le=3600)] = 30.0
    """Longest silence of the server; without an upload also the limit of the whole request."""

    def __repr__(self) -> str:
        """Without the token, which must not be shown."""
        return f"ClientSettings(server={self.server!r})"


class KbSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The topics that can be learned."""

    topic: dict[str, TopicSettings] = msgspec.field(default_factory=dict)
    """By id, in the order in which the layers first name them."""


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings."""

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

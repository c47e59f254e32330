"""The records of the settings, one for each section. Field names are the settings' keys."""

# Long because it is a list of settings, which are data.

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from kb import __version__
from kb.model.code import CODE_MIMES
from kb.model.doc import Visibility
from kb.model.file_kinds import NAMED_MIMES

_Positive = Annotated[int, Meta(ge=1)]
_NotNegative = Annotated[int, Meta(ge=0)]
_Share = Annotated[float, Meta(ge=0.0, le=1.0)]
_Pattern = Annotated[str, Meta(min_length=1, max_length=4_096)]
_NAME_RULE: Final = "a name of letters, digits, dots, hyphens and underscores"
_PluginName = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z", max_length=100, description=_NAME_RULE)
]
_PluginNameOrNone = Annotated[
    str,
    Meta(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*)?\Z", max_length=100, description=_NAME_RULE),
]
_TokenHost = Annotated[
    str,
    Meta(
        pattern=r"\A(?:\[[0-9A-Fa-f:.]+\]|[\w.-]*)(?::[0-9]{1,5})?\Z",
        max_length=300,
        description="a host, as HOST or HOST:PORT",
    ),
]
_Language = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z][A-Za-z0-9_]{1,40}(/[A-Za-z0-9_]{1,40})?\Z",
        description="a language as tesseract names it, such as eng",
    ),
]
_Patterns = Annotated[tuple[_Pattern, ...], Meta(max_length=256)]


def _overlap_error(overlap_tokens: int, tokens_max: int) -> str:
    return (
        f"overlap_tokens ({overlap_tokens}) is over a quarter of tokens_max ({tokens_max}); "
        f"set overlap_tokens to {tokens_max // 4} or less first"
    )


LLM_PROVIDERS: Final = ("none", "ollama", "anthropic", "openai")
EXTENSIONS: Final = (
    *("md", "markdown", "mdown", "mdwn", "mkd", "mdx", "qmd", "rmd"),
    *("txt", "text", "bib", "ris", "htm", "html", "shtml", "xhtml", "xht", "pdf"),
    *("docx", "xlsx", "pptx", "odt", "ods", "odp", "epub", "ipynb", "eml", "emlx", "csv", "tsv"),
    *("xls", "msg", "doc", "ppt", "docm", "dotx", "xlsm", "xltx", "pptm", "ppsx", "potx"),
    *("ott", "ots", "otp", "fodt", "fods", "fodp", "fb2", "enex", "jex", "vcf", "vcard", "opml"),
    *("mobi", "azw", "azw3", "djvu", "djv", "vsdx", "vsdm", "vstx"),
    *("mht", "mhtml", "webarchive", "url", "desktop", "webloc"),
    *("canvas", "excalidraw", "drawio", "svg"),
    *("mbox", "rtf", "json", "jsonl", "ndjson", "yaml", "yml", "toml", "srt", "vtt", "ics"),
    *("png", "jpg", "jpeg", "gif", "webp", "tif", "tiff", "bmp", "heic", "heif", "avif"),
    *("org", "rst", "adoc", "asciidoc", "asc", "tex", "latex"),
    *CODE_MIMES,
    *NAMED_MIMES,
)
"""Of the formats that kb itself reads."""


class IngestSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits and file types of ingest."""

    file_bytes_max: _Positive = 64 << 20
    """Larger files are refused."""
    extensions: tuple[str, ...] = EXTENSIONS
    """Extensions that are taken from folders. While it is not set, those of plugins, too."""
    parse_cpu_s: _Positive = 30
    """Seconds of processor time for reading one file; as much again for each 100 pages of a PDF
    that were read, at most 20 times as much."""
    parse_memory_bytes: _Positive = 2 << 30
    """Memory of the process that reads them."""
    ocr: Literal["auto", "on", "off"] = "auto"
    """Text recognition (OCR) of pages without text, in the background: `auto` does it where the
    program `tesseract` is installed, `on` has `kb doctor` ask for it, `off` never does it."""
    ocr_languages: tuple[_Language, ...] = ()
    """What tesseract reads, as it names languages, such as `["eng", "deu"]`; empty is `eng`."""

    @property
    def folder_extensions(self) -> tuple[str, ...]:
        """The extensions that were set; empty for those of every format that has a parser."""
        return () if self.extensions == EXTENSIONS else self.extensions


class ChunkSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sizes of chunks, in tokens of the embedding model."""

    tokens_max: Annotated[int, Meta(ge=32, le=8192)] = 256
    """Length of a chunk, in the model's tokens."""
    overlap_tokens: _NotNegative = 32
    """How many tokens of a chunk the next one repeats; at most a quarter."""

    def __post_init__(self) -> None:
        """Raise ValueError if the overlap is over a quarter of a chunk."""
        if self.overlap_tokens > self.tokens_max // 4:
            raise ValueError(_overlap_error(self.overlap_tokens, self.tokens_max))


class EntrySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sizes of chunks of entries, in tokens of the model, whose own limit may be lower."""

    tokens_max: Annotated[int, Meta(ge=32, le=8192)] = 512
    """Length of a chunk of an entry, in the model's tokens; the model may read fewer (the
    built-in one reads 256)."""
    overlap_tokens: _NotNegative = 50
    """How many tokens of such a chunk the next one repeats; at most a quarter."""

    def __post_init__(self) -> None:
        """Raise ValueError if the overlap is over a quarter of a chunk."""
        if self.overlap_tokens > self.tokens_max // 4:
            raise ValueError(_overlap_error(self.overlap_tokens, self.tokens_max))


class EmbedSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The embedding model; an empty `model` is the built-in one."""

    kind: _PluginName = "onnx"
    """`onnx`, `multilingual` (its extra installs it), `sentence-transformers`, `openai` or `ollama`
    (servers that speak these APIs), `hashing` (for tests), or the name of a plugin."""
    model: str = ""
    """The model's name or folder; empty is the built-in one."""
    base_url: Annotated[str, Meta(max_length=2_000)] = ""
    """Where the server of `openai` or `ollama` is; empty is Ollama's own place, and none for
    `openai`; a project cannot set it."""
    timeout_s: Annotated[float, Meta(gt=0, le=3600)] = 60.0
    """Seconds that such a server may be silent."""
    tries: Annotated[int, Meta(ge=1, le=10)] = 3
    """How often kb asks such a server that is busy or fails."""
    tokens_max: Annotated[int, Meta(ge=32, le=32_768)] = 512
    """Tokens of a text that are sent to such a server, as kb counts them; the rest is cut off."""
    threads: _NotNegative = 0
    """Threads that embed; 0 for one per core."""
    query_prefix: str = ""
    """Put before a query when it is embedded."""
    passage_prefix: str = ""
    """Put before a chunk when it is embedded."""
    scripts: tuple[str, ...] = ()
    """Scripts that a sentence-transformers model reads, such as `"Latin"`, `"Han"`; empty for
    all."""


class WorkSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The worker pool."""

    threads: Annotated[int, Meta(ge=1, le=64)] = 2
    """Threads that work on jobs."""
    lease_ms: Annotated[int, Meta(ge=1000)] = 120_000
    """Milliseconds that a worker holds a job before others may take it."""
    idle_ms: Annotated[int, Meta(ge=10)] = 200
    """Milliseconds between two looks for work."""


class SearchSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How candidates are ranked and become hits."""

    fusion: Literal["spaced", "plain"] = "spaced"
    """`spaced` ranks from scores, or `plain` ranks; see ADR 5."""
    rrf_k: _Positive = 200
    """The constant of reciprocal rank fusion: the larger it is, the less a first rank in one index
    counts beside good ranks in both."""
    lexical_weight: _Share = 0.5
    """Weight of the words; the rest is the weight of the meaning, of which less counts where the
    model does not know the language."""
    lexical_top_share: _Share = 0.3
    """Share of the best possible score by words; a best hit below it does not get the full
    score."""
    feedback_passages: _NotNegative = 3
    """Number of best chunks that the query is moved towards; 0 for none."""
    feedback_weight: _Share = 0.2
    """How far it is moved."""
    candidates: _Positive = 200
    """Candidates from each of the two indexes; as many as there are hits if that is more."""
    mmr_similarity: _Share = 0.95
    """From this similarity on, chunks count as near-duplicates."""
    mmr_crowd: _Positive = 2
    """How many near-duplicates keep their rank; later ones move down."""
    entity_boost: Annotated[float, Meta(ge=1.0)] = 1.5
    """Factor for chunks that mention what `--boost-entity` names."""
    query_chars_max: _Positive = 8_192
    """Longer queries are cut, with a warning."""


class RerankSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reranker: it reads the query with each of the best candidates, and orders them anew."""

    kind: _PluginNameOrNone = ""
    """`onnx`, `sentence-transformers`, or the name of a plugin; empty for none. Searches use it
    unless they say `--no-rerank`."""
    model: str = ""
    """Its folder or name: for `onnx` a folder with `model.onnx` and `tokenizer.json`."""
    budget_ms: _Positive = 1_000
    """Milliseconds that a search may rerank, without loading the model; chunks that were not
    reached keep their places, and a warning says so."""
    candidates: Annotated[int, Meta(ge=1, le=1_000)] = 30
    """How many of the best chunks are reranked."""


class IndexSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The lexical and dense caches."""

    dense_mode: Literal["auto", "exact", "hnsw"] = "auto"
    """`exact`, `hnsw`, or by size; see ADRs 3 and 98."""
    crossover_rows: _Positive = 3_000_000
    """From this many chunks on `auto` uses a graph (HNSW)."""
    lock_wait_ms: _NotNegative = 10_000
    """Milliseconds to wait for another process that updates an index."""


class FetchSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which web pages may be fetched, and the limits of a fetch."""

    allow: tuple[str, ...] = ()
    """Hosts, addresses and networks that kb may fetch from although they are not public, with
    or without a port, such as `"192.168.1.7:8080"`."""
    bytes_max: Annotated[int, Meta(ge=1)] = 32 << 20
    """Larger pages are refused; the size is that of the unpacked page."""
    total_s: Annotated[float, Meta(gt=0, le=3600)] = 30.0
    """Seconds for one page with its redirects."""
    connect_s: Annotated[float, Meta(gt=0, le=3600)] = 10.0
    """Seconds to connect."""
    hops_max: Annotated[int, Meta(ge=0)] = 5
    """Redirects that kb follows at most."""
    user_agent: Annotated[
        str,
        Meta(
            pattern=r"^[!-~]([ -~]*[!-~])?\Z",
            description="text of ASCII characters, with no space at its ends",
        ),
    ] = f"kb/{__version__}"
    """How kb names itself to servers."""
    robots: bool = True
    """Whether kb respects robots.txt when it follows links; it does not ask for a page that you
    name."""
    git_token_host: _TokenHost = ""
    """The one host, as `HOST` or `HOST:PORT`, that may have `KB_GIT_TOKEN` for a repository; a
    project cannot set it."""


class ContentSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a home in a database keeps large originals.

    The home has these settings itself, so that all its machines agree: `kb config set` writes them
    there, and no file or option can. Keys are not settings.
    """

    bucket: Annotated[str, Meta(max_length=500)] = ""
    """`s3://NAME/PREFIX`; empty for the database."""
    endpoint: Annotated[
        str,
        Meta(
            pattern=r"\A(https?://[A-Za-z0-9._:\[\]-]+/?)?\Z",
            max_length=300,
            description="an address such as https://minio.example:9000",
        ),
    ] = ""
    """Where the bucket's server is, such as `https://minio.example:9000`; empty for AWS."""
    region: Annotated[
        str,
        Meta(
            pattern=r"\A[a-z0-9-]{0,60}\Z",
            description="a name of small letters, digits and hyphens",
        ),
    ] = ""
    """The bucket's region; empty is `us-east-1`."""


HOME_SECTIONS: Final = ("content",)
"""Sections whose settings a home in a database has itself."""


class CrawlSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits of a crawl of a site."""

    pages_max: Annotated[int, Meta(ge=1, le=100_000)] = 5_000
    """Pages that become docs at most."""
    depth_max: Annotated[int, Meta(ge=0, le=100)] = 10
    """Links that lead from the start to a page at most."""
    minutes_max: Annotated[int, Meta(ge=1, le=10_080)] = 120
    """Minutes of one run; the next one goes on."""
    bytes_max: Annotated[int, Meta(ge=1)] = 1 << 30
    """Bytes of the pages that one run fetches; the next one goes on."""
    connections: Annotated[int, Meta(ge=1, le=16)] = 4
    """Requests at once; with a crawl-delay in robots.txt it is one."""
    feed_entries_max: Annotated[int, Meta(ge=1, le=10_000)] = 500
    """Entries that are read of a feed at most."""


class LlmSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The language model and its time limits. API keys are not settings."""

    provider: _PluginName = "none"
    """`none`, `ollama`, `anthropic`, `openai` or the name of a plugin; see Language models."""
    model: Annotated[str, Meta(max_length=200)] = ""
    """The model's name, as its provider calls it."""
    base_url: Annotated[str, Meta(max_length=2_000)] = ""
    """Where its API is; empty is the provider's own."""
    timeout_s: Annotated[float, Meta(gt=0, le=3600)] = 120.0
    """Seconds that its server may be silent; a whole question may take `llm.tries` times that."""
    tries: Annotated[int, Meta(ge=1, le=10)] = 3
    """How often kb asks a busy or failing server."""
    answer_tokens_max: Annotated[int, Meta(ge=1, le=1_000_000)] = 4_096
    """Longest answer in tokens; the API of anthropic requires it."""


class CompactSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long compaction keeps what is no longer needed."""

    grace_min: _NotNegative = 60
    """Minutes between a file's mark and its removal."""
    model_days: _NotNegative = 7
    """Days that the vectors of the previous model are kept."""
    tombstone_days: _NotNegative = 30
    """Days until `kb compact` frees a removed doc."""


class PackSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The signers whose packs are trusted."""

    trusted_keys: Annotated[
        tuple[
            Annotated[
                str,
                Meta(
                    pattern=r"^[A-Za-z0-9+/]{43}=\Z",
                    description="a public key of 44 characters, as kb pack keygen prints it",
                ),
            ],
            ...,
        ],
        Meta(max_length=256),
    ] = ()
    """Public keys whose signatures on archives are accepted without a warning; a project cannot
    set it."""


TopicAuthor = Literal["user", "project", "stranger"]


class TopicSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A topic that can be learned: a folder whose files are its subjects."""

    enable: bool = True
    """`false` turns the topic off."""
    title: (
        Annotated[
            str,
            Meta(
                pattern=r"\S",
                max_length=200,
                description="text of at most 200 characters, and not empty",
            ),
        ]
        | None
    ) = None
    """Its name; without one, the id."""
    introduction: Annotated[str, Meta(max_length=2_000)] | None = None
    """One line for the list of topics."""
    description: Annotated[str, Meta(max_length=8_000)] | None = None
    """Paragraphs above the list of subjects, and above those that are learned."""
    subjects: Annotated[str, Meta(pattern=r"\A[^\0]+\Z", description="a folder")] = ""
    """The folder; required. A project's topic counts from the folder that holds `.kb/`, any other
    from the home."""
    learned: _Patterns = ()
    """Slugs and globs that the system prompt holds from the start."""
    disabled: _Patterns = ()
    """Slugs and globs that cannot be learned, whatever other keys say."""
    index: bool = True
    """Whether searches find its subjects too."""
    visibility: Visibility = "private"
    """Who may learn it and find its subjects: `private` is you alone, `shared` every named user,
    `public` everybody; searches follow at the next sync."""
    defined_at: str = ""
    """File and line of `subjects`. `load` sets this and `defined_by`; no layer may."""
    defined_by: TopicAuthor = "user"
    """Whose file defines it; `stranger` for a project that is not trusted."""


FILLED_IN: Final = ("defined_at", "defined_by")
TOPIC_KEYS: Final = tuple(k for k in TopicSettings.__struct_fields__ if k not in FILLED_IN)
"""The keys of a topic that a layer may set."""


class NotebookSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The notebook's folder and its remote."""

    path: Annotated[str, Meta(pattern=r"\A[^\0]*\Z", max_length=4_096, description="a folder")] = ""
    """The notebook's folder, relative to the home or absolute; empty is `notebook`; a project can
    name only one below its `.kb`."""
    push: bool = False
    """Whether kb pushes its branch to its `origin` after commits; a project cannot set it."""
    token_host: _TokenHost = ""
    """The one host, as `HOST` or `HOST:PORT`, that may have `KB_NOTEBOOK_TOKEN`; a project cannot
    set it."""


class ServeSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where `kb serve` listens, and the limits of its requests."""

    host: Annotated[str, Meta(min_length=1, max_length=255)] = "127.0.0.1"
    """Where `kb serve` listens."""
    port: Annotated[int, Meta(ge=0, le=65_535)] = 7777
    """Its port; 0 takes a free one."""
    hosts: Annotated[tuple[str, ...], Meta(max_length=64)] = ()
    """Names that requests may ask for, in addition to those of this machine and `serve.host`;
    without a port."""
    origins: Annotated[tuple[str, ...], Meta(max_length=64)] = ()
    """Other sites whose pages may ask, such as `https://example.org`."""
    body_bytes_max: Annotated[int, Meta(ge=1, le=64 << 20)] = 1 << 20
    """Largest body of a request."""
    header_bytes_max: Annotated[int, Meta(ge=1_024, le=1 << 20)] = 32 << 10
    """Largest head of a request; half of it for the address."""
    processes: Annotated[int, Meta(ge=1, le=64)] = 1
    """Processes that answer; each has the model and its indexes in memory."""
    concurrency_max: Annotated[int, Meta(ge=1, le=1_000)] = 32
    """Requests that the server works on at once; others get 503."""
    long_max: Annotated[int, Meta(ge=1, le=1_000)] = 8
    """Further requests that may wait for a language model, a page or a parser."""
    connections_max: Annotated[int, Meta(ge=1, le=10_000)] = 256
    """Connections at once."""
    streams_max: Annotated[int, Meta(ge=1, le=10_000)] = 64
    """Streamed answers at once; others get 503."""
    stream_s: Annotated[float, Meta(gt=0, le=86_400)] = 600.0
    """Seconds that a streamed answer lasts."""
    upload_bytes_max: Annotated[int, Meta(ge=1, le=1 << 30)] = 64 << 20
    """Largest file that the server takes."""
    head_s: Annotated[float, Meta(gt=0, le=3600)] = 10.0
    """Seconds for a request's head."""
    body_s: Annotated[float, Meta(gt=0, le=3600)] = 30.0
    """Seconds for a request's body."""
    unread_s: Annotated[float, Meta(gt=0, le=3600)] = 30.0
    """Seconds that an answer waits for its reader."""
    idle_s: Annotated[int, Meta(ge=1, le=3600)] = 5
    """Seconds that a connection stays open between two requests."""


class ClientSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The server that the command line sends its requests to, if any."""

    server: Annotated[str, Meta(max_length=2_000)] = ""
    """The server that commands ask instead of a home."""
    token: Annotated[str, Meta(max_length=1_000)] = ""
    """The token for that server; `KB_TOKEN` comes first."""
    insecure: bool = False
    """Whether a token may go over plain http to another machine."""
    timeout_s: Annotated[float, Meta(gt=0, le=3600)] = 30.0
    """Seconds to wait for an answer; files and answers of a language model get more."""

    def __repr__(self) -> str:
        """Without the token, which must not be shown."""
        return f"ClientSettings(server={self.server!r})"


class SpacesSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the homes of spaces are."""

    user: Annotated[str, Meta(max_length=4_096)] = ""
    """Your own space: an absolute path, or the address of a home in a database; empty is the
    platform's data folder. Counts from your own settings alone."""


class KbSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The topics that can be learned."""

    topic: dict[str, TopicSettings] = msgspec.field(default_factory=dict)
    """What can be learned, one table per topic; see Topics."""


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings."""

    ingest: IngestSettings = IngestSettings()
    chunk: ChunkSettings = ChunkSettings()
    entry: EntrySettings = EntrySettings()
    embed: EmbedSettings = EmbedSettings()
    work: WorkSettings = WorkSettings()
    search: SearchSettings = SearchSettings()
    rerank: RerankSettings = RerankSettings()
    index: IndexSettings = IndexSettings()
    fetch: FetchSettings = FetchSettings()
    crawl: CrawlSettings = CrawlSettings()
    content: ContentSettings = ContentSettings()
    compact: CompactSettings = CompactSettings()
    llm: LlmSettings = LlmSettings()
    pack: PackSettings = PackSettings()
    notebook: NotebookSettings = NotebookSettings()
    serve: ServeSettings = ServeSettings()
    client: ClientSettings = ClientSettings()
    spaces: SpacesSettings = SpacesSettings()
    kb: KbSettings = KbSettings()

"""What was asked for? Layers of TOML, environment and flags, read once into frozen Settings.

Later layers win: defaults, the user's config.toml, the home's kb.toml, KB_CFG, --cfg.
"""

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from kb import __version__
from kb.errors import ConfigError

_Positive = Annotated[int, Meta(ge=1)]
_NotNegative = Annotated[int, Meta(ge=0)]
_Share = Annotated[float, Meta(ge=0.0, le=1.0)]


class IngestSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is taken in."""

    file_bytes_max: _Positive = 64 << 20
    extensions: tuple[str, ...] = ("md", "markdown", "txt", "text", "html", "htm", "xhtml", "pdf")
    parse_wall_s: _Positive = 60
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


class EmbedSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which model embeds; an empty `model` is the built-in one."""

    kind: Literal["onnx", "sentence-transformers", "hashing"] = "onnx"
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


class CompactSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What compaction may take away."""

    grace_min: _NotNegative = 60
    tombstone_days: _NotNegative = 30


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that can be set."""

    ingest: IngestSettings = IngestSettings()
    chunk: ChunkSettings = ChunkSettings()
    embed: EmbedSettings = EmbedSettings()
    work: WorkSettings = WorkSettings()
    search: SearchSettings = SearchSettings()
    index: IndexSettings = IndexSettings()
    fetch: FetchSettings = FetchSettings()
    compact: CompactSettings = CompactSettings()


_ASSIGNMENT: Final = re.compile(r"([A-Za-z0-9_.-]+?)(\+?=)(.*)", re.DOTALL)


class _Mismatch(ConfigError):
    """Settings that are well each but not together."""


def load(
    files: Iterable[Path], overrides: Iterable[str] = (), env: Mapping[str, str] | None = None
) -> Settings:
    """Read the layers into Settings.

    `files` that are absent are passed over; `overrides` are KEY=VALUE, KEY+=VALUE or files that
    must be there; KB_CFG holds more of them, parted by newlines. Raises ConfigError that names
    the layer, the key and, in a file, the line.
    """
    env = os.environ if env is None else env
    merged: dict[str, Any] = {}
    for file in files:
        if file.is_file():
            _take_file(merged, file)
    for override in (*filter(None, env.get("KB_CFG", "").split("\n")), *overrides):
        match = _ASSIGNMENT.fullmatch(override)
        if match is None:
            file = Path(override).expanduser()
            if not file.exists():
                raise ConfigError("neither KEY=VALUE nor a file", place=f"--cfg {override}")
            _take_file(merged, file)
        else:
            _take_assignment(merged, override, *match.groups())
    return _converted("the settings", merged)


def _check(place: str, table: dict[str, Any]) -> None:
    """Raise ConfigError where a layer is wrong whatever the others say."""
    try:
        _converted(place, table)
    except _Mismatch:
        # Settings that do not go together: another layer may yet change one of them.
        return


def _take_file(merged: dict[str, Any], file: Path) -> None:
    try:
        text = file.read_text("utf-8")
        table = tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"cannot be read ({error.strerror})", place=file) from error
    except UnicodeDecodeError as error:
        raise ConfigError("not UTF-8", place=file) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not TOML: {error}", place=file) from error
    try:
        _check(str(file), table)
    except ConfigError as error:
        key = str(error.fields.get("key", ""))
        raise ConfigError(str(error.fields["detail"]), place=_place(file, text, key)) from None
    _merge(merged, table)


def _take_assignment(merged: dict[str, Any], whole: str, key: str, operator: str, raw: str) -> None:
    place = f"--cfg {whole}"
    parts = key.split(".")
    value = _value(raw)
    if operator == "+=":
        value = [*_looked_up(merged, parts), *(value if isinstance(value, list) else [value])]
    table: dict[str, Any] = {}
    inner = table
    for part in parts[:-1]:
        inner = inner.setdefault(part, {})
    inner[parts[-1]] = value
    _check(place, table)
    _merge(merged, table)


def _value(raw: str) -> Any:
    try:
        return tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        return raw


def _looked_up(merged: dict[str, Any], parts: list[str]) -> list[Any]:
    found: Any = msgspec.to_builtins(Settings())
    _merge(found, merged)
    for part in parts:
        found = found.get(part, []) if isinstance(found, dict) else []
    return list(found) if isinstance(found, list | tuple) else [found]


def _merge(into: dict[str, Any], table: dict[str, Any]) -> None:
    for key, value in table.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _converted(place: str, table: dict[str, Any]) -> Settings:
    try:
        return msgspec.convert(table, Settings, strict=True)
    except msgspec.ValidationError as error:
        detail, _, path = str(error).partition(" - at `$.")
        unknown = re.search(r"unknown field `([^`]*)`", detail)
        key = ".".join(filter(None, (path.rstrip("`"), unknown.group(1) if unknown else "")))
        said = f"unknown setting {key}{_meant(key)}" if unknown else f"{key}: {detail}"
        kind = _Mismatch if isinstance(error.__cause__, ValueError) else ConfigError
        raise kind(said, place=place, key=key) from None


def _meant(key: str) -> str:
    import difflib

    known = [
        f"{section}.{name}"
        for section, said in msgspec.to_builtins(Settings()).items()
        for name in said
    ]
    near = difflib.get_close_matches(key, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _place(file: Path, text: str, key: str) -> str:
    """File and line of a key, as near as can be told."""
    name = key.rsplit(".", 1)[-1].split("[", maxsplit=1)[0]
    for number, line in enumerate(text.splitlines(), 1):
        if name and re.match(
            rf"\s*\[?\s*(?:[\w.-]+\.)?[\"']?{re.escape(name)}[\"']?\s*[=\].]", line
        ):
            return f"{file}:{number}"
    return str(file)

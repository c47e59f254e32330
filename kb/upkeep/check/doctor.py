"""Health advice beyond the store itself: host, disk, model, jobs, sources, clock, remote."""

import os
import resource
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import OCR_INSTALL, EmbedError, ModelMissing
from kb.intake.embed.multilingual import offer
from kb.intake.embed.scripts import can_read, scripts_of
from kb.intake.sync.origins import is_seen, list_origins, shown_location
from kb.knowledge.notebook import PushReport
from kb.model.config.sections import IndexSettings
from kb.model.doc import Doc
from kb.model.job import Job
from kb.model.origin import Origin
from kb.model.source import is_picture
from kb.search.index import hnsw
from kb.store import chunks, docs
from kb.store.jobs import queue
from kb.store.jobs.holder import is_gone
from kb.store.kv import ReadTxn
from kb.store.nodes import caches_of_nodes
from kb.store.server_state import ServerState
from kb.store.store import Store

if TYPE_CHECKING:
    from kb.search.backends import DenseBackend

_FREE_BYTES_MIN: Final = 512 << 20
_OPEN_FILES_MIN: Final = 256
_ADDRESS_BYTES_MIN: Final = 1 << 36
_DAY_MS: Final = 86_400_000
_STALE_MS: Final = 7 * _DAY_MS
_AHEAD_MS: Final = 300_000
# November 2023: a clock before that was never set.
_CLOCK_MS_MIN: Final = 1_700_000_000_000
_NAMED_MAX: Final = 3
_SAMPLED_MAX: Final = 200
# Less of the chunks is a quotation here and there.
_UNREAD_SHARE: Final = 0.05
# Fewer failed pushes than this are taken for a short network outage and not reported.
_PUSHES_MIN: Final = 3
# A cache takes up fewer changes than these within seconds.
_BEHIND_MAX: Final = 10_000
_SERVER_MAJOR_MIN: Final = 15
_CONNECTIONS_SHARE: Final = 0.8
_ROUND_TRIP_MS_MAX: Final = 20
# Network file systems, where memory maps and locks are not reliable.
_NETWORK: Final = frozenset(
    (
        *("9p", "afs", "ceph", "cifs", "davfs", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs"),
        *("fuse.sshfs", "glusterfs", "lustre", "ncpfs", "nfs", "nfs4", "smb3", "smbfs"),
    )
)


class Advice(Struct, frozen=True, kw_only=True):
    """A problem that needs attention, and what to do about it. Field names are JSON output."""

    place: str
    problem: str
    mend: str


class HostEnvironment(Struct, frozen=True, kw_only=True):
    """The host's limits and the state of the home's folder."""

    root: str
    """Its real path."""
    mode: int
    """Permission bits."""
    is_writable: bool
    free_bytes: int
    mounts: str
    """The text of /proc/mounts; empty if there is no such file."""
    open_files_max: int
    """Limit of this process; -1 for none."""
    address_bytes_max: int
    """Address space of this process; -1 for no limit."""


def inspect_host(root: Path) -> HostEnvironment:
    """Read the host's limits for an existing home."""
    try:
        mounts = Path("/proc/mounts").read_text("utf-8", "surrogateescape")
    except OSError:
        mounts = ""
    return HostEnvironment(
        root=os.path.realpath(root),
        mode=root.stat().st_mode & 0o777,
        is_writable=os.access(root, os.W_OK),
        free_bytes=shutil.disk_usage(root).free,
        mounts=mounts,
        open_files_max=_soft_limit(resource.RLIMIT_NOFILE),
        address_bytes_max=_soft_limit(resource.RLIMIT_AS),
    )


def _soft_limit(which: int) -> int:
    soft = resource.getrlimit(which)[0]
    return -1 if soft == resource.RLIM_INFINITY else soft


def server_advice(server: ServerState) -> Iterator[Advice]:
    """Advice on the server that a home's store is on."""

    def advice(problem: str, mend: str) -> Advice:
        return Advice(place="server", problem=problem, mend=mend)

    if server.major < _SERVER_MAJOR_MIN:
        yield advice(f"it is PostgreSQL {server.version}", f"use {_SERVER_MAJOR_MIN} or later")
    if server.is_replica:
        yield advice("it is a replica, so nobody can write", "name the primary in the address")
    elif not server.may_write:
        yield advice("this user may only read", "grant more, if it is to add; see the how-to")
    if server.synchronous_commit == "off" or not server.fsync:
        setting = "synchronous_commit" if server.fsync else "fsync"
        problem = f"{setting} is off, so a crash of the server loses what kb has acknowledged"
        yield advice(problem, f"turn {setting} on")
    if server.connections > server.connections_max * _CONNECTIONS_SHARE:
        problem = f"{server.connections} of {server.connections_max} connections are in use"
        yield advice(problem, "raise max_connections, or put a pooler in front")
    if server.round_trip_ms > _ROUND_TRIP_MS_MAX:
        problem = f"a round trip takes {server.round_trip_ms:.0f} ms, and a search makes several"
        yield advice(problem, "run kb nearer to the database, or ask a `kb serve` that is there")


def home_advice(host: HostEnvironment) -> Iterator[Advice]:
    """Advice on a home's folder, file system, free space and process limits."""
    if host.mode & 0o077:
        problem = f"other users may enter it (mode {host.mode:04o})"
        yield Advice(place="home", problem=problem, mend=f"chmod 700 {host.root}")
    if not host.is_writable:
        yield Advice(place="home", problem="it cannot be written", mend=f"chmod 700 {host.root}")
    kind = file_system_kind(host.mounts, host.root)
    if kind in _NETWORK:
        problem = f"it lies on a network file system ({kind}), which may damage it"
        yield Advice(place="home", problem=problem, mend="move it to a local disk")
    if host.free_bytes < _FREE_BYTES_MIN:
        problem = f"{host.free_bytes >> 20:,} MiB are free"
        yield Advice(place="disk", problem=problem, mend="free some space; kb compact may help")
    if 0 <= host.open_files_max < _OPEN_FILES_MIN:
        problem = f"a process may open {host.open_files_max} files only"
        yield Advice(place="limits", problem=problem, mend=f"ulimit -n {4 * _OPEN_FILES_MIN}")
    if 0 <= host.address_bytes_max < _ADDRESS_BYTES_MIN:
        problem = f"a process may map {host.address_bytes_max >> 20:,} MiB only"
        yield Advice(place="limits", problem=problem, mend="ulimit -v unlimited")


def file_system_kind(mounts: str, path: str) -> str:
    """The type of the file system that a real path lies on; empty if unknown."""
    mount_point, kind = "", ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        # Blanks in names are written as octal escapes.
        point = fields[1].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
        is_above = path == point or path.startswith(point.rstrip("/") + "/")
        # Of several mounts at one point the last one hides the others.
        if is_above and len(point) >= len(mount_point):
            mount_point, kind = point, fields[2]
    return kind


def model_advice(model: "Callable[[], DenseBackend]") -> Iterator[Advice]:
    """Advice on the embedding model: loads it, which verifies its files, and embeds a query."""
    try:
        loaded = model()
        loaded.embedder.embed_query("kb")
    except (ModelMissing, EmbedError) as error:
        mend = "put the model back, or choose another one with kb embedder set"
        yield Advice(place="model", problem=str(error), mend=mend)
        return
    if loaded.warning:
        mend = "run kb embedder set, or set the home's model in the settings"
        yield Advice(place="model", problem=loaded.warning, mend=mend)


def scripts_advice(model: "Callable[[], DenseBackend]", sample: Iterable[str]) -> Iterator[Advice]:
    """Advice where a part of some chunks is in scripts that the model in use does not read."""
    try:
        readable = model().embedder.scripts
    except (ModelMissing, EmbedError):
        return  # `model_advice` says so.
    texts = list(sample)
    unread = [text for text in texts if not can_read(readable, text)]
    if not unread or len(unread) < _UNREAD_SHARE * len(texts):
        return
    scripts = Counter[str]()
    for text in unread:
        scripts.update(scripts_of(text))
    names = [name for name, _ in scripts.most_common() if name not in readable]
    problem = (
        f"it does not read {_first_names(names)}, as in {len(unread):,} of {len(texts):,} passages"
        " looked at; they are found by words alone"
    )
    yield Advice(place="model", problem=problem, mend=offer())


def graph_advice(store: Store, settings: IndexSettings) -> Iterator[Advice]:
    """Advice where the library of the approximate index is wanted and not installed."""
    with store.read() as txn:
        problem = hnsw.lack(settings, txn.count("chunks"))
    if problem is not None:
        yield Advice(place="index", problem=problem, mend=hnsw.how_to_get())


def sampled_texts(store: Store) -> list[str]:
    """The first chunks of docs that lie evenly among all active ones."""
    with store.read() as txn:
        active = [doc.source_no for doc in docs.all_latest(txn) if doc.status == "active"]
        step = max(1, len(active) // _SAMPLED_MAX)
        firsts = (chunks.at(txn, source_no, 0) for source_no in active[::step])
        return [chunk.text for chunk in firsts if chunk is not None]


def store_advice(store: Store) -> Iterator[Advice]:
    """Advice on jobs, sources, docs and the clock; only what the caller sees is named."""
    now_ms, caller = store.clock.now_ms(), store.caller
    with store.read() as txn:
        yield from _jobs_advice(txn, store)
        for origin in list_origins(txn):
            if is_seen(origin, caller):
                yield from _source_advice(origin, now_ms)
        active = [doc for doc in docs.all_latest(txn) if doc.status == "active"]
    yield from _coverage_advice([doc for doc in active if doc.visible_to(caller)])
    yield from _clock_advice(active, now_ms)


def nodes_advice(store: Store) -> Iterator[Advice]:
    """Advice on machines whose caches are wrong, or keep the log long for a cache unused."""
    if not store.node:
        return
    now_ms = store.clock.now_ms()
    with store.read() as txn:
        nodes = caches_of_nodes(txn, now_ms)
    for node in nodes:
        place = f"caches of {node.node}"
        for problem in node.problems:
            mend = f"run `kb check --repair` on {node.node}"
            yield Advice(place=place, problem=problem, mend=mend)
        days = (now_ms - node.seen_ms) // _DAY_MS
        if days and node.behind > _BEHIND_MAX:
            problem = f"not used for {days:,} days, and the log is kept for {node.behind:,} changes"
            mend = "a search there takes them up; after seven days they are made anew"
            yield Advice(place=place, problem=problem, mend=mend)


def push_advice(report: PushReport | None) -> Iterator[Advice]:
    """Advice on a notebook remote that needs a person or fails repeatedly."""
    if report is None or not report.behind:
        return
    missing = f"{report.behind:,} commit{'s' if report.behind > 1 else ''}"
    problem = f"{report.remote} is {missing} behind: {report.last_error}"
    if report.state in ("diverged", "refused"):
        yield Advice(place="notebook", problem=problem, mend="see to it, then kb note push")
    elif report.state == "waiting" and report.attempts >= _PUSHES_MIN:
        yield Advice(place="notebook", problem=problem, mend="kb note push, once it is reached")


def _jobs_advice(txn: ReadTxn, store: Store) -> Iterator[Advice]:
    counts = queue.counts(txn)
    if counts.failed:
        reasons = dict.fromkeys(job.last_error or "unknown" for job in queue.failed(txn))
        why = f": {_first_names(list(reasons))}" if store.caller.operator else ""
        problem = f"{counts.failed:,} failed for good{why}"
        yield Advice(place="jobs", problem=problem, mend="kb worker --retry-failed")
    stuck = [job for job in queue.running(txn) if _is_stuck(job, store)]
    if stuck:
        problem = f"{len(stuck):,} are held by a worker that is gone"
        yield Advice(place="jobs", problem=problem, mend="kb worker --drain")
    if counts.ready:
        problem = f"{counts.ready:,} wait; until they are done, searches miss some docs"
        yield Advice(place="jobs", problem=problem, mend="kb worker --drain")


def _is_stuck(job: Job, store: Store) -> bool:
    return is_gone(job.holder) or job.deadline_ms <= store.clock.lease_ms()


def _source_advice(origin: Origin, now_ms: int) -> Iterator[Advice]:
    name = origin.origin_id[:9]
    if origin.gone_since_ms:
        mend = f"remove its doc with kb rm, and the source with kb sources rm {name}"
        yield Advice(place=shown_location(origin), problem="the page is gone", mend=mend)
    elif origin.last_error:
        mend = f"see to it, then kb sync-all --source {name}"
        yield Advice(place=shown_location(origin), problem=origin.last_error, mend=mend)
    elif (age_ms := now_ms - (origin.synced_ms or origin.added_ms)) > _STALE_MS:
        problem = f"not synced for {age_ms // _DAY_MS:,} days"
        yield Advice(
            place=shown_location(origin), problem=problem, mend="kb sync-all, as from cron"
        )


def _coverage_advice(active: list[Doc]) -> Iterator[Advice]:
    incomplete = [doc for doc in active if _pages_without_text(doc)]
    if incomplete:
        pages = sum(map(_pages_without_text, incomplete))
        problem = f"{pages:,} without text, in {_first_names([doc.source for doc in incomplete])}"
        mend = f"{OCR_INSTALL}, then kb worker --drain; what it has looked at has no words"
        yield Advice(place="pages", problem=problem, mend=mend)


def _pages_without_text(doc: Doc) -> int:
    """A picture need not have words."""
    if doc.coverage is None or is_picture(doc.mime):
        return 0
    return doc.coverage.pages - doc.coverage.pages_with_text


def _clock_advice(active: list[Doc], now_ms: int) -> Iterator[Advice]:
    mend = "set the machine's clock"
    if now_ms < _CLOCK_MS_MIN:
        yield Advice(place="clock", problem="it was never set", mend=mend)
    ahead = sum(doc.updated_ms > now_ms + _AHEAD_MS for doc in active)
    if ahead:
        yield Advice(place="clock", problem=f"it is behind {ahead:,} of the docs", mend=mend)


def _first_names(names: list[str]) -> str:
    more = len(names) - _NAMED_MAX
    return ", ".join(names[:_NAMED_MAX]) + (f" and {more:,} more" if more > 0 else "")

"""From sources to docs, every one accounted for."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from homes import SmallHome

from kb.errors import StoreFull
from kb.intake.canonicalize import CanonicalizeInput, Parser
from kb.intake.ingest.changes import tombstone
from kb.intake.ingest.request import IngestOptions
from kb.intake.sync.add import Adder, AddOptions
from kb.intake.sync.report import AddReport, PartCounts
from kb.model.text import Canonical
from kb.store import docs


@pytest.fixture
def home(tmp_path: Path) -> Iterator[SmallHome]:
    home = SmallHome(tmp_path / "home")
    yield home
    home.close()


def adder(home: SmallHome, **options: object) -> Adder:
    said = AddOptions(**options)  # type: ignore[arg-type]
    return Adder(home.store, home.ingestor, Parser(), said)


def accounted(report: AddReport) -> bool:
    ends = (report.added, report.updated, report.unchanged, report.resurrected)
    return report.scanned == sum(ends) + report.skipped + report.failed


def notes(folder: Path, count: int) -> Path:
    folder.mkdir()
    for n in range(count):
        (folder / f"{n:03}.md").write_text(f"note {n}")
    return folder


def test_progress_counts_every_source(home: SmallHome, tmp_path: Path) -> None:
    """Progress hears of each source once, up to all of them."""
    heard: list[tuple[int, int]] = []
    folder = notes(tmp_path / "n", 5)
    report = adder(home, recursive=True).add(
        [str(folder), str(tmp_path / "none")], on_progress=lambda *now: heard.append(now)
    )
    assert heard == [(n, 6) for n in range(1, 7)]
    assert (report.scanned, report.added, report.failed) == (6, 5, 1)


def test_a_record_that_is_level_is_not_parsed(home: SmallHome, tmp_path: Path) -> None:
    """Its bytes tell; with other tags, and once it is removed, it is looked at."""
    file = tmp_path / "library.bib"
    parsed: list[str] = []

    class ToldParser(Parser):
        def parse(self, source: CanonicalizeInput) -> Canonical:
            parsed.append(source.name)
            return super().parse(source)

    def records(text: str, **options: object) -> PartCounts:
        parsed.clear()
        file.write_text(text)
        with ToldParser() as parser:
            said = AddOptions(**options)  # type: ignore[arg-type]
            return Adder(home.store, home.ingestor, parser, said).add([str(file)]).records

    def library(*notes: str) -> str:
        entries = (f"@misc{{k{n}, title={{T{n}}}, note={{{s}}}}}" for n, s in enumerate(notes))
        return "\n".join(entries)

    assert records(library("a", "b", "c")).added == 3
    assert records(library("a", "new", "c", "d")) == PartCounts(
        scanned=4, unchanged=2, updated=1, added=1
    )
    assert parsed == ["library.bib", "T1.bib", "T3.bib"]
    same = library("a", "new", "c", "d") + "\n"
    assert records(same, dry_run=True) == PartCounts(scanned=4, unchanged=4)
    tagged = IngestOptions(tags=("x",))
    assert records(same, ingest_options=tagged) == PartCounts(scanned=4, updated=4)
    with home.store.read() as txn:
        (gone,) = [doc for doc in docs.all_latest(txn) if doc.source.endswith("#k0")]
    tombstone(home.store, [gone.doc_id])
    assert records(library("a", "new", "c", "e")) == PartCounts(
        scanned=4, unchanged=2, updated=1, resurrected=1
    )


def test_an_interruption_keeps_what_is_staged(home: SmallHome, tmp_path: Path) -> None:
    """What was staged when Ctrl-C came is committed, and the report counts just that."""
    folder = notes(tmp_path / "n", 20)
    taken = adder(home, recursive=True)

    def interrupt(done: int, _: int) -> None:
        if done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        taken.add([str(folder)], on_progress=interrupt)
    report = taken.report()
    assert accounted(report)
    assert (report.added, home.count("docs")) == (7, 7)
    again = adder(home, recursive=True).add([str(folder)])
    assert (again.unchanged, again.added) == (7, 13)


def test_a_full_disk_ends_it_with_nothing_half_there(
    home: SmallHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the home is at fault it is not the source that has failed: the error comes through."""
    folder = notes(tmp_path / "n", 3)

    def full(*_: object) -> None:
        raise StoreFull("no space", place=home.root)

    monkeypatch.setattr(home.ingestor, "commit", full)
    with pytest.raises(StoreFull):
        adder(home, recursive=True).add([str(folder)])
    assert home.count("docs") == 0


def test_a_file_that_is_parsed_once_is_not_read_again(home: SmallHome, tmp_path: Path) -> None:
    """An unchanged file is told by its stamp alone, once the stamp is old enough to be trusted."""
    path = tmp_path / "a.md"
    path.write_text("words")
    os.utime(path, ns=(1, 1))
    home.clock.jump(10 * 365 * 24 * 3_600_000)
    assert adder(home).add([str(path)]).added == 1
    path.chmod(0o644)
    assert adder(home).add([str(path)]).unchanged == 1
    opened: list[str] = []
    whole = os.open

    def watched(name: object, *args: object, **more: object) -> int:
        opened.append(str(name))
        return whole(name, *args, **more)  # type: ignore[arg-type,call-overload,no-any-return]

    patch = pytest.MonkeyPatch()
    patch.setattr(os, "open", watched)
    try:
        assert adder(home).add([str(path)]).unchanged == 1
    finally:
        patch.undo()
    assert str(path) not in opened


def test_a_stamp_too_young_to_trust_is_checked_by_bytes(home: SmallHome, tmp_path: Path) -> None:
    """A file that changed within the clock's resolution of being read is read again."""
    path = tmp_path / "a.md"
    path.write_text("first")
    before = path.stat()
    adder(home).add([str(path)])
    path.write_text("other")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert adder(home).add([str(path)]).updated == 1


def test_one_file_however_it_is_typed(home: SmallHome, tmp_path: Path) -> None:
    """Links and dots on the way to a file make no second doc of it."""
    path = tmp_path / "a.md"
    path.write_text("words")
    (tmp_path / "link.md").symlink_to(path)
    for typed in (path, tmp_path / "." / "a.md", tmp_path / "link.md"):
        assert accounted(adder(home).add([str(typed)]))
    assert home.count("docs") == 1


def test_a_dry_run_foresees_each_end(home: SmallHome, tmp_path: Path) -> None:
    """A dry run says added, updated, unchanged and failed as the run would, and writes nothing."""
    folder = notes(tmp_path / "n", 2)
    adder(home, recursive=True).add([str(folder)])
    (folder / "000.md").write_text("edited")
    (folder / "new.md").write_text("new")
    (folder / "bad.md").write_bytes(b"\x7fELF" + bytes(100))
    files = home.files()
    report = adder(home, recursive=True, dry_run=True).add([str(folder)])
    assert (report.added, report.updated, report.unchanged, report.failed) == (1, 1, 1, 1)
    assert home.files() == files
    real = adder(home, recursive=True).add([str(folder)])
    assert (real.added, real.updated, real.unchanged, real.failed) == (1, 1, 1, 1)


def test_wishes_alone_are_an_update(home: SmallHome, tmp_path: Path) -> None:
    """New tags on unchanged bytes are taken over; saying nothing of them leaves them."""
    path = tmp_path / "a.md"
    path.write_text("words")
    adder(home).add([str(path)])
    tagged = adder(home, ingest_options=IngestOptions(tags=("x",))).add([str(path)])
    assert tagged.updated == 1
    assert adder(home).add([str(path)]).unchanged == 1
    doc = home.doc(tagged.docs[0].doc_id)
    assert doc is not None
    assert (doc.tags, doc.version) == (("x",), 1)


def test_many_sources_share_few_commits(
    home: SmallHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small files are committed in groups, each whole or not at all."""
    folder = notes(tmp_path / "n", 300)
    sizes: list[int] = []
    whole = home.ingestor.commit

    def commit(batch: list[object], *rest: object) -> object:
        sizes.append(len(batch))
        return whole(batch, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(home.ingestor, "commit", commit)
    assert adder(home, recursive=True).add([str(folder)]).added == 300
    assert len(sizes) == 3
    assert sum(sizes) == 300


@pytest.mark.parametrize("swapped", ["file", "folder", "name"])
def test_what_becomes_a_link_after_it_was_listed_is_not_read(
    home: SmallHome, tmp_path: Path, swapped: str
) -> None:
    """Neither a file nor a folder on its way leads out of what was listed."""
    folder = notes(tmp_path / "n", 1)
    secret = notes(tmp_path / "secret", 2)
    inner = notes(folder / "inner", 2)

    def swap(done: int, _: int) -> None:
        if done != 1:
            return
        if swapped == "folder":
            inner.rename(tmp_path / "aside")
            inner.symlink_to(secret)
            return
        (inner / "001.md").unlink()
        if swapped == "file":
            (inner / "001.md").symlink_to(secret / "001.md")
        else:
            os.mkfifo(inner / "001.md")

    report = adder(home, recursive=True).add([str(folder)], on_progress=swap)
    assert accounted(report)
    assert report.failed == (2 if swapped == "folder" else 1)
    told = {problem.reason for problem in report.problems}
    if swapped == "folder":
        assert told == {"its path became a symbolic link; links are not followed"}
    else:
        assert told == {"not a regular file any more"}


def test_a_file_that_is_saved_anew_after_it_was_listed_is_read(
    home: SmallHome, tmp_path: Path
) -> None:
    """Editors put a new file in the place of the old one."""
    folder = notes(tmp_path / "n", 2)

    def save(done: int, _: int) -> None:
        if done == 1:
            (tmp_path / "new").write_text("saved anew")
            (tmp_path / "new").rename(folder / "001.md")

    report = adder(home, recursive=True).add([str(folder)], on_progress=save)
    assert (report.added, report.failed) == (2, 0)

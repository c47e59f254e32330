"""Notes as jobs: handed in, placed once, whoever dies on the way."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from notebooks import NoteHome, commit_file, git, needs_git

from kb.errors import CannotUndo, NoJob, UsageError
from kb.knowledge.notebook import NotebookChanges, checked_text, reports
from kb.model.ids import JobId
from kb.model.note import NOTE_BYTES_MAX
from kb.store.jobs import queue


@pytest.fixture
def home(tmp_path: Path) -> Iterator[NoteHome]:
    home = NoteHome(tmp_path)
    yield home
    home.close()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b" \n\t\n", "empty"),
        (b"a\0b", "NUL"),
        (b"a\xffb", "from byte 1"),
        (b"a" * (NOTE_BYTES_MAX + 1), "over 1,048,576"),
    ],
)
def test_what_is_no_note(data: bytes, words: str) -> None:
    """Empty, over the limit, or no text: refused in words."""
    with pytest.raises(UsageError, match=words):
        checked_text(data)


def test_a_note_ends_its_last_line() -> None:
    """A newline is added where there is none, a byte order mark goes; the rest is as it came."""
    assert checked_text(b"\xef\xbb\xbfa\r\nb") == "a\r\nb\n"
    assert len(checked_text(b"a" * NOTE_BYTES_MAX)) == NOTE_BYTES_MAX + 1


@pytest.mark.parametrize(
    ("hint", "tags"),
    [("a\nb", []), ("x" * 1_001, []), (None, [""]), (None, ["a\x1bb"]), (None, ["t"] * 1 + [" "])],
)
def test_a_hint_or_tag_that_is_none(home: NoteHome, hint: str | None, tags: list[str]) -> None:
    """More than a line, or nothing: refused, and nothing is queued."""
    with pytest.raises(UsageError):
        home.hand_in("x\n", hint, *tags)
    assert home.claims() == []


def test_the_life_of_a_note(home: NoteHome) -> None:
    """Queued, processing, done with path and commit; its text is let go."""
    job = home.hand_in("# One\n", "work", "t")
    assert home.report(job).status == "queued"
    claims = home.claims()
    assert home.report(job).status == "processing"
    home.organizer.work(claims)
    done = home.report(job)
    assert (done.kind, done.status, done.path) == ("organize", "done", "work/one.md")
    assert done.commit is not None
    owners = {"work/one.md": "local"}
    assert home.arrivals == [NotebookChanges(added={"work/one.md": ("t",)}, owners=owners)]
    assert home.home.count("note_texts") == 0


def test_an_unknown_job(home: NoteHome) -> None:
    """There is none of this id."""
    for ident in ("j000000000099", "", "x"):
        with pytest.raises(NoJob):
            home.report(JobId(ident))


def test_the_same_note_while_it_waits_is_one_job(home: NoteHome) -> None:
    """Handed in twice it is placed once; after that it is another note, beside the first."""
    first = home.hand_in("# One\n", "work")
    assert home.hand_in("# One\n", "work") == first
    assert home.hand_in("# One\n", "work", "t") != first
    home.organizer.work(home.claims())
    again = home.place("# One\n", "work")
    assert (again.job_id != first, again.path) == (True, "work/one-3.md")


def test_a_failed_note_is_asked_for_anew(home: NoteHome) -> None:
    """The same note again takes the failed one's place, with all its attempts."""
    first = home.hand_in("# One\n", "work")
    (claim,) = home.claims()
    with home.home.store.write() as txn:
        queue.fail(txn, home.home.clock, claim, "no luck", permanent=True)
    failed = home.report(first)
    assert (failed.status, failed.reason) == ("failed", "no luck")
    second = home.hand_in("# One\n", "work")
    with home.home.store.read() as txn:
        assert [one.job_id for one in reports(txn, 10)] == [second]
    home.organizer.work(home.claims())
    assert home.report(second).status == "done"


def test_many_notes_are_a_commit_each(home: NoteHome) -> None:
    """Placed together, each has its commit, with its file and its entry in it and no other's."""
    jobs = [home.hand_in(f"# Note {n}\n", f"f{n % 3}") for n in range(9)]
    home.organizer.work(home.claims())
    paths = [home.report(job).path for job in jobs]
    names = [f"store({job}): {path}" for job, path in zip(jobs, paths, strict=True)]
    assert home.subjects() == ["Set up the notebook", *names]
    assert sorted(home.listed()) == sorted(path for path in paths if path)
    assert home.seen() == home.committed()


def test_jobs_are_listed(home: NoteHome) -> None:
    """Those of all kinds, by when they were asked for, at most as many as asked for."""
    home.home.put("a.md", "text\n")
    home.home.clock.advance(1)
    job = home.hand_in("# One\n")
    with home.home.store.read() as txn:
        assert [one.kind for one in reports(txn, 10)] == ["chunk", "organize"]
        assert [one.job_id for one in reports(txn, 1)] == [job]


def test_what_waits_is_listed_before_what_is_done(home: NoteHome) -> None:
    """However many notes were placed since, a job that is still to do is not cut off."""
    home.home.put("a.md", "text\n")
    home.hand_in("# One\n")
    home.organizer.work(home.claims())
    with home.home.store.read() as txn:
        assert [one.kind for one in reports(txn, 1)] == ["chunk"]


def test_a_note_is_placed_with_those_it_is_like(home: NoteHome) -> None:
    """Without hint and tags the nearest notes' folder is taken, where it is one for notes."""
    home.place("# One\n", "deep/sea")
    home.like = [("deep/sea/one.md", 0.9)]
    assert home.place("# Two\n").path == "deep/sea/two.md"
    home.like = [("No Such/one.md", 0.9)]
    assert home.place("# Three\n").path == "inbox/three.md"


def test_a_job_that_has_its_commit_is_not_done_again(home: NoteHome) -> None:
    """A worker that died between its commit and the end of the job has done it."""
    job = home.hand_in("# One\n", "work", "t")
    (claim,) = home.claims()

    def dies(_: NotebookChanges) -> dict[str, str]:
        raise KeyboardInterrupt

    home.organizer._take_in = dies  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        home.organizer.work([claim])
    home.organizer._take_in = home.take_in
    before = home.subjects()
    home.home.clock.advance(claim.lease_ms)
    with home.home.store.write() as txn:
        queue.reclaim(txn, home.home.clock)
    home.organizer.work(home.claims())
    done = home.report(job)
    assert (done.status, done.path) == ("done", "work/one.md")
    assert home.subjects() == before
    owners = {"work/one.md": "local"}
    assert home.arrivals == [NotebookChanges(added={"work/one.md": ("t",)}, owners=owners)]


def test_a_worker_that_was_overtaken_commits_nothing(home: NoteHome) -> None:
    """One that was stopped beyond its lease finds that the job is another's."""
    job = home.hand_in("# One\n", "work")
    late = home.claims()
    home.home.clock.advance(late[0].lease_ms)
    with home.home.store.write() as txn:
        queue.reclaim(txn, home.home.clock)
    home.organizer.work(home.claims())
    before = home.subjects()
    home.organizer.work(late)
    assert home.subjects() == before
    assert home.report(job).status == "done"


@needs_git
def test_a_note_is_taken_back(home: NoteHome) -> None:
    """A commit that reverts the note's; the list is as it was, and the engine hears of it."""
    home.place("# One\n", "work")
    before = home.committed()
    job = home.place("# Two\n", "play").job_id
    undone = home.undo(job)
    assert home.committed() == before == home.seen()
    assert home.subjects()[-1] == f"undo({job}): play/two.md"
    assert home.arrivals[-1] == NotebookChanges(removed=("play/two.md",))
    assert git(home.root, "rev-parse", "HEAD").strip() == undone.commit
    assert git(home.root, "status", "--porcelain") == ""


def test_later_notes_stay_when_one_is_taken_back(home: NoteHome) -> None:
    """Only its own file and its own entry go."""
    first, _ = home.place("# One\n", "work"), home.place("# Two\n", "work")
    home.undo(first.job_id)
    assert home.listed() == ["work/two.md"]
    assert set(home.seen()) == {".gitignore", "INDEX.md", "work/two.md"}


@needs_git
@pytest.mark.parametrize("how", ["committed", "edited", "staged", "gone"])
def test_what_stands_on_a_note_keeps_it(home: NoteHome, how: str) -> None:
    """A later commit or an edit on its file: refused in words, and nothing changes."""
    job = home.place("# One\n", "work").job_id
    if how == "committed":
        commit_file(home.root, "work/one.md", "# One, mine\n")
    elif how == "gone":
        (home.root / "work/one.md").unlink()
    else:
        (home.root / "work/one.md").write_text("# One, mine\n", "utf-8")
        if how == "staged":
            git(home.root, "add", "work/one.md")
    before, status = home.subjects(), git(home.root, "status", "--porcelain")
    with pytest.raises(CannotUndo, match=r"work/one\.md"):
        home.undo(job)
    assert home.subjects() == before
    assert git(home.root, "status", "--porcelain") == status


def test_a_note_is_taken_back_once(home: NoteHome) -> None:
    """A second time is refused, as is a job that never had a commit."""
    job = home.place("# One\n", "work").job_id
    home.undo(job)
    with pytest.raises(CannotUndo, match="already"):
        home.undo(job)
    with pytest.raises(NoJob):
        home.undo("j000000000099")

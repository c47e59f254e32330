"""The files of a registry: what is written of an entry, and what is read of an index."""

import json
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeClock

from kb.errors import StoreFull, Unparsable
from kb.intake.embed.hashing import HashingEmbedder
from kb.knowledge.entries import EntryFault, parse
from kb.knowledge.registry.front import EmbeddingBlock, with_embedding, without_embedding
from kb.knowledge.registry.index import VectorSet, parse_index
from kb.knowledge.registry.publish import publish
from kb.knowledge.registry.pulled_file import install_file
from kb.knowledge.registry.target import FolderTarget
from kb.knowledge.registry.vectors import Pipeline, markdown_of, read_vectors
from kb.model.ids import sha256_hex

HEAD = "---\nzettel_id: a\ntitle: A\n"
SAID = EmbeddingBlock(model='m:"1"', dimensions=4, chunks=2, last_computed="2026-11-22T01:00:00Z")


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}---\nembedding: of the text\n",
        f"{HEAD}embedding:\n  model: old\n  chunks: 9\n\ntags: [a, b]\n---\ntext",
        f"{HEAD}embedding: {{model: old,\n  chunks: 9}}\nversion: 1.0.0\n---\ntext",
        f'{HEAD}"embedding": null\n---\ntext',
    ],
)
def test_the_embedding_is_filled_in_and_nothing_else(text: str) -> None:
    """Filled in twice is as once; without it the text is as it was without its own."""
    filled = with_embedding(text, SAID)
    assert isinstance(filled, str)
    assert with_embedding(filled, SAID) == filled
    assert without_embedding(filled) == without_embedding(text)
    assert parse(filled) == parse(text)
    assert filled.partition("\n---\n")[2] == text.partition("\n---\n")[2]


def test_an_embedding_that_cannot_be_told_apart_is_a_fault() -> None:
    """Front matter in one pair of braces has no lines of its own."""
    assert isinstance(with_embedding("---\n{zettel_id: a, title: A}\n---\nt", SAID), EntryFault)


def pipeline() -> Pipeline:
    embedder = HashingEmbedder(16)
    made_by = VectorSet(model=embedder.fingerprint, chunker="c", dim=16)
    return Pipeline(made_by=made_by, tokens_max=64, overlap_tokens=8, embedder=lambda: embedder)


def published(root: Path, name: str, clock: FakeClock) -> dict[str, bytes]:
    source, to = root / "source", root / name
    source.mkdir(exist_ok=True)
    for ident in "ab":
        text = f"---\nzettel_id: {ident}\ntitle: {ident}\n---\ntext of {ident}\n"
        (source / f"{ident}.md").write_text(text)
    publish(source, FolderTarget(to), pipeline(), clock, to=name)
    files = (path for path in to.rglob("*") if path.is_file())
    return {path.relative_to(to).as_posix(): path.read_bytes() for path in files}


def test_equal_input_gives_equal_bytes(tmp_path: Path) -> None:
    """In another folder at the same time; and in the same folder at any later time."""
    clock = FakeClock()
    first = published(tmp_path, "one", clock)
    assert published(tmp_path, "two", clock) == first
    clock.advance(86_400_000)
    assert published(tmp_path, "one", clock) == first


def test_others_may_read_what_is_published(tmp_path: Path) -> None:
    """Whatever the mask of new files is: a server has to."""
    published(tmp_path, "one", FakeClock())
    modes = {path.is_dir(): path.stat().st_mode & 0o777 for path in (tmp_path / "one").rglob("*")}
    assert modes == {True: 0o755, False: 0o644}


def index_of(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(published(tmp_path, "one", FakeClock())["index.json"])
    return found


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"zettel_id": "../a"}, "is no id"),
        ({"zettel_id": "b"}, "is not where entries are"),
        ({"path": "entries/../../a.md"}, "is not where entries are"),
        ({"version": "1"}, "has no semantic version"),
        ({"sha256": "x"}, "cannot be read"),
        ({"size": 1 << 40}, "cannot be read"),
        ({"vectors": {"0" * 16: {"path": "x", "sha256": "0" * 64, "size": 1}}}, "is not named"),
    ],
)
def test_an_index_with_anything_odd_is_refused(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    """As a whole: no path of a stranger is followed."""
    index = index_of(tmp_path)
    index["entries"][0] |= changes
    with pytest.raises(Unparsable, match=said):
        parse_index(json.dumps(index).encode(), "team")


def test_an_entry_stands_in_an_index_once(tmp_path: Path) -> None:
    """Else nobody knows which one is meant."""
    index = index_of(tmp_path)
    index["entries"].append(index["entries"][0])
    with pytest.raises(Unparsable, match="a stands in it twice"):
        parse_index(json.dumps(index).encode(), "team")


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda data: data[:-4],
        lambda data: data[:-4] + b"\0\0\xc0\x7f",
        lambda data: data.replace(b'"start":0', b'"start":1', 1),
        lambda data: data.replace(b'"zettel_id":"a"', b'"zettel_id":"b"', 1),
        lambda data: b"{}\n",
    ],
)
def test_vectors_that_are_not_those_of_the_text_are_refused(tmp_path: Path, spoilt: Any) -> None:
    """One row missing, no number, another place, another entry, no head."""
    files = published(tmp_path, "one", FakeClock())
    (path,) = (path for path in files if path.endswith("/a.bin"))
    text = files["entries/a.md"]
    entry, markdown = parse(text.decode()), markdown_of(text, "a.md")
    assert not isinstance(entry, tuple)
    made_by = pipeline().made_by
    ready = read_vectors(files[path], entry, markdown, made_by, "a")
    assert ready is not None
    assert ready.vectors.shape == (len(ready.chunks), 16)
    assert read_vectors(files[path], entry, "another reading", made_by, "a") is None
    with pytest.raises(Unparsable):
        read_vectors(spoilt(files[path]), entry, markdown, made_by, "a")


def test_an_entry_lands_through_no_link(tmp_path: Path) -> None:
    """Neither the file it is written to first nor the folder of what was put aside is followed."""
    (tmp_path / "outside").write_text("mine")
    (tmp_path / "aside").mkdir()
    folder = tmp_path / "knowledge"
    folder.mkdir()
    (folder / ".a.md.pulled").symlink_to(tmp_path / "outside")
    with pytest.raises(StoreFull):
        install_file(folder / "a.md", b"theirs", expected=None, aside_ms=None)
    (folder / "b.md").write_text("old")
    (folder / ".mine").symlink_to(tmp_path / "aside")
    with pytest.raises(StoreFull, match="is a link"):
        install_file(folder / "b.md", b"theirs", expected=sha256_hex(b"old"), aside_ms=0)
    assert (tmp_path / "outside").read_text() == "mine"
    assert list((tmp_path / "aside").iterdir()) == []

"""An archive is taken as it was written, or not at all."""

import gzip
import io
import random
import tarfile
import zipfile
from typing import Any

import msgspec
import numpy as np
import pytest
from nacl.signing import SigningKey
from packs_archive import TEXTS, archive, cuts, joined, manifest, members, passage, vectors

from kb.errors import Refused, SourceError, TooLarge, Unparsable
from kb.knowledge.packs import portable
from kb.knowledge.packs.keys import public_of
from kb.knowledge.packs.portable import GUARD, PortableDocChunks, read_archive
from kb.knowledge.packs.tar import TarMember, unpacked

KEY = SigningKey(bytes(range(32)))
OTHER = SigningKey(bytes(32))


def read(data: bytes) -> portable.Archive:
    return read_archive(data, "a.tar")


def test_what_was_written_is_read() -> None:
    """Docs, passages with their texts, vectors, and who signed."""
    found = read(archive(KEY))
    assert found.docs == {name: text.encode() for name, text in TEXTS.items()}
    assert found.key == public_of(KEY)
    assert read(archive()).key == ""
    quince = found.ready["docs/quince.md"]
    assert [one.text for one in quince.chunks] == [
        "# Quince\n\nA hard quince.",
        "And another one.",
    ]
    assert (quince.chunker, quince.model) == ("chunk-x", "model-x")
    assert np.array_equal(quince.vectors, vectors()[1:])


def test_equal_content_is_equal_bytes() -> None:
    """Nothing in it depends on when or where it was made; any tar program can list it."""
    assert archive(KEY) == archive(KEY)
    with tarfile.open(fileobj=io.BytesIO(archive())) as opened:
        infos = opened.getmembers()
    assert {(one.mtime, one.uid, one.mode) for one in infos} == {(0, 0, 0o644)}
    names = [one.name for one in infos]
    assert names == ["manifest.json", *TEXTS, "passages.jsonl", "vectors.f32", "seal.json"]


def test_a_guard_is_no_part_of_a_text() -> None:
    """A text that begins like front matter keeps its beginning."""
    docs = {name: GUARD.encode() + text.encode() for name, text in TEXTS.items()}
    assert read(archive(docs=docs)).ready["docs/pear.md"].markdown == TEXTS["docs/pear.md"]


@pytest.mark.parametrize("signed", [KEY, None], ids=["signed", "unsigned"])
def test_a_byte_that_was_flipped(signed: SigningKey | None) -> None:
    """Anywhere: in headers, padding, docs, vectors, the seal, the end."""
    data = archive(signed)
    rng = random.Random(7)
    for place in [*range(0, len(data), 61), *rng.sample(range(len(data)), 300)]:
        changed = bytearray(data)
        changed[place] ^= 1 << rng.randrange(8)
        with pytest.raises(SourceError):
            read(bytes(changed))


def test_an_archive_that_was_cut_short_or_goes_on() -> None:
    """At every block, and within some."""
    data = archive()
    for length in [*range(0, len(data), 512), 1, 700, len(data) - 1]:
        with pytest.raises(Unparsable):
            read(data[:length])
    for more in (b"\0", bytes(512), data):
        with pytest.raises(Unparsable):
            read(data + more)


def test_a_wrong_signature() -> None:
    """Of another archive, of another key, without its key, without itself."""
    *rest, seal = members(KEY)
    said = msgspec.json.decode(seal.data)
    other = msgspec.json.decode(members(KEY, manifest=manifest(version="2"))[-1].data)
    wrong = [
        {**said, "signature": other["signature"]},
        {**said, "key": public_of(OTHER)},
        {"manifest": said["manifest"], "signature": said["signature"]},
        {"manifest": said["manifest"], "key": said["key"]},
        {**said, "signature": said["signature"][:-4] + "AAA="},
    ]
    for one in wrong:
        with pytest.raises(Refused, match="signature is wrong"):
            read(joined([*rest, TarMember(seal.name, msgspec.json.encode(one))]))


def tar_of(info: tarfile.TarInfo, form: int = tarfile.USTAR_FORMAT) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=form) as opened:
        opened.addfile(info, io.BytesIO(b"x" * info.size))
    return made.getvalue()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"type": tarfile.SYMTYPE, "linkname": "manifest.json"}, "is a link"),
        ({"type": tarfile.LNKTYPE, "linkname": "manifest.json"}, "is a link"),
        ({"type": tarfile.CHRTYPE}, "is a device"),
        ({"type": tarfile.BLKTYPE}, "is a device"),
        ({"type": tarfile.FIFOTYPE}, "is a pipe"),
        ({"type": tarfile.DIRTYPE}, "is a folder"),
        ({"name": "/docs/a.md"}, "not a plain relative path"),
        ({"name": "docs/../../a.md"}, "not a plain relative path"),
        ({"name": "docs/.hidden.md"}, "not a plain relative path"),
        ({"name": "docs//a.md"}, "not a plain relative path"),
        ({"name": "docs\\a.md"}, "not a plain relative path"),
        ({"name": "d" * 99 + ".md"}, "not a plain relative path|header"),
        ({"mode": 0o4755}, "header"),
        ({"mtime": 1}, "header"),
        ({"uname": "root"}, "header"),
    ],
    ids=str,
)
def test_what_has_no_place_in_an_archive(said: dict[str, Any], why: str) -> None:
    """Links, devices, paths that lead out, and whatever else a header can say."""
    info = tarfile.TarInfo("docs/a.md")
    info.mode = 0o644
    for name, value in said.items():
        setattr(info, name, value)
    form = tarfile.GNU_FORMAT if len(info.name) > 100 else tarfile.USTAR_FORMAT
    with pytest.raises((Refused, Unparsable), match=why):
        read(tar_of(info, form))


def test_extended_headers() -> None:
    """A member may not be renamed by a header before it."""
    info = tarfile.TarInfo("docs/a.md")
    info.pax_headers = {"path": "../a.md"}
    with pytest.raises((Refused, Unparsable)):
        read(tar_of(info, tarfile.PAX_FORMAT))


def test_one_name_twice() -> None:
    """The second could hide the first."""
    rows = members()
    with pytest.raises(Refused, match=r"it has docs/pear\.md twice"):
        read(joined([*rows[:2], rows[1], *rows[2:]]))


def test_nothing_is_unpacked_of_what_is_compressed() -> None:
    """A compressed archive is none, so it cannot grow."""
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("manifest.json", bytes(1 << 20))
    for data in (zipped.getvalue(), gzip.compress(archive()), gzip.compress(bytes(1 << 20))):
        with pytest.raises(Unparsable, match=r"not a plain tar|cut short"):
            read(data)


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes in all, files, and bytes of one; a size that is only claimed costs nothing."""
    data = archive()
    with pytest.raises(TooLarge, match="over 3 files"):
        unpacked(data, "a.tar", members_max=3, bytes_max=1 << 20)
    with pytest.raises(TooLarge, match="over the limit of 9 bytes"):
        unpacked(data, "a.tar", members_max=9, bytes_max=9)
    info = tarfile.TarInfo("manifest.json")
    info.size, info.mode = 8**11 - 1, 0o644
    with pytest.raises(TooLarge):
        read(info.tobuf(tarfile.USTAR_FORMAT))
    with monkeypatch.context() as patched:
        patched.setattr(portable, "BODY_BYTES_MAX", 30)
        with pytest.raises(TooLarge, match=r"docs/quince\.md"):
            read(data)
    monkeypatch.setattr(portable, "ARCHIVE_BYTES_MAX", len(data) - 1)
    with pytest.raises(TooLarge):
        read(data)


def wrong_vectors(place: tuple[int, int], value: float) -> Any:
    rows = vectors()
    rows[place] = value
    return rows


def lying(*passages: portable.PortableChunk) -> list[PortableDocChunks]:
    return [PortableDocChunks(doc="docs/pear.md", passages=passages), cuts()[1]]


@pytest.mark.parametrize(
    "said",
    [
        {"vectors": wrong_vectors((0, 0), np.nan)},
        {"vectors": wrong_vectors((1, 1), np.inf)},
        {"vectors": wrong_vectors((2, 2), 1.1)},
        {"vectors": np.zeros((3, 4), np.float32)},
        {"vectors": vectors()[:2]},
        {"vectors": np.eye(3, 5, dtype=np.float32)},
        {"manifest": manifest(portable={"passages": 2})},
        {"manifest": manifest(portable={"dim": 0})},
        {"manifest": manifest(portable={"format": 2})},
        {"manifest": manifest(pack_id="../out")},
        {"manifest": manifest(pack_id="a/b")},
        {"manifest": manifest(pack_id=".hidden")},
        {"cuts": lying(passage(0, 99))},
        {"cuts": lying(passage(5, 5))},
        {"cuts": lying(passage(5, 4))},
        {"cuts": lying()},
        {"cuts": lying(*(passage(0, 20) for _ in range(9)))},
        {"cuts": cuts()[:1]},
        {"cuts": cuts()[::-1]},
        {"cuts": [*cuts(), cuts()[0]]},
        {"docs": dict.fromkeys(TEXTS, b"\xff")},
        {"docs": {**{name: text.encode() for name, text in TEXTS.items()}, "docs/pear.md": b"# P"}},
    ],
    ids=range(22),
)
def test_whole_and_sealed_but_wrong(said: dict[str, Any]) -> None:
    """Vectors, counts and places are held against each other, whoever sealed them."""
    with pytest.raises((Unparsable, Refused)):
        read(archive(KEY, **said))


def test_passages_go_forward() -> None:
    """Two that change places are no cut."""
    first, second = cuts()[1].passages
    turned = PortableDocChunks(doc="docs/quince.md", passages=(second, first))
    with pytest.raises(Unparsable, match="not in its text"):
        read(archive(cuts=[cuts()[0], turned]))


@pytest.mark.parametrize("path", ["docs/../x.md", "/docs/x.md", "x.md", "docs/pear.md"])
def test_docs_lie_where_the_manifest_says(path: str) -> None:
    """Each in docs/, none twice, all of them there."""
    first, second = manifest().docs
    said = manifest(docs=(first, msgspec.structs.replace(second, source_path=path)))
    rows = members()
    head = members(manifest=said, docs={**dict.fromkeys([path], b"x"), "docs/pear.md": b"x"})[0]
    with pytest.raises((Unparsable, Refused)):
        read(joined([head, *rows[1:]]))
    with pytest.raises((Unparsable, Refused)):
        read(joined([*rows[:2], *rows[3:]]))

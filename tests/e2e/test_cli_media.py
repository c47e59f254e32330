"""Sounds, films and archives beside notes, by the real command: found by name, never read whole."""

import os
from pathlib import Path
from typing import Any, cast

import media_files as media
from commands import KB, Home, run, surroundings
from http_server import serving

LARGE_BYTES = 6_000_000_000


def library(folder: Path) -> Path:
    """A note on the flood among films and songs that are called after it, one of 6 GB."""
    folder.mkdir()
    (folder / "Flood.md").write_text("# Water\n\nThe flood of 2024 took the weir.\n")
    for number in range(15):
        song = media.mp3(("TIT2", f"Flood {number}"), ("TPE1", "Ada Wolf"))
        (folder / f"flood-{number:02}.mp3").write_bytes(song)
    sparse(folder / "lecture on weirs.mkv", media.mkv("Weirs"), LARGE_BYTES)
    (folder / "backup.zip").write_bytes(b"PK\5\6" + bytes(18))
    (folder / "handwriting.ttf").write_bytes(b"\0\1\0\0" + bytes(60))
    (folder / "voice memo.m4a").write_bytes(media.mp4(made=3_639_715_200))
    (folder / "lib.so").write_bytes(b"\x7fELF" + bytes(60))
    (folder / "app.sqlite").write_bytes(b"SQLite format 3\0" + bytes(60))
    return folder


def sparse(path: Path, head: bytes, size: int, *, tail: bytes = b"end") -> None:
    """A file of this length that takes no room."""
    with path.open("wb") as file:
        file.write(head)
        file.seek(size - len(tail))
        file.write(tail)


def names(home: Home, query: str, *words: str) -> list[str]:
    """The files of the hits, best first."""
    found = home.run("search", query, "--json", "-k", "60", *words).json
    return [Path(hit["source"]).name for hit in found["hits"]]


def freshness(home: Home) -> str:
    """What a search says of the only hit's file."""
    (hit,) = home.run("search", "weirs", "--json").json["hits"]
    return str(hit["freshness"])


def test_files_are_found_by_name_and_do_not_drown_notes(tmp_path: Path) -> None:
    """The note is first, the film is found by its name, and libraries and databases stay out."""
    home, folder = Home(tmp_path / "home"), library(tmp_path / "in")
    added = home.run("add", folder, "--json").json
    assert (added["added"], added["skipped"], added["failed"]) == (20, 2, 0)
    home.run("worker", "--drain")
    assert names(home, "flood")[0] == "Flood.md"
    assert {f"flood-{number:02}.mp3" for number in range(15)} <= {*names(home, "flood")}
    assert names(home, "lecture weirs")[0] == "lecture on weirs.mkv"
    assert names(home, "ada wolf flood 7", "--kind", "audio")[0] == "flood-07.mp3"
    assert names(home, "kind:video weirs") == ["lecture on weirs.mkv"]
    assert names(home, "kind:font handwriting") == ["handwriting.ttf"]
    assert names(home, "memo", "--on", "2019-05-03") == ["voice memo.m4a"]
    stats = home.run("stats", "--json").json
    assert (stats["by_name"], stats["vectors"]) == (19, 1)
    assert "19 docs" in home.run("stats").out
    assert home.run("show", "lecture on weirs.mkv").out.startswith("Weirs")
    assert not any(
        path.is_file() for path in (home.root / "raw").rglob("*") if path.suffix != ".md"
    )


def test_a_large_film_is_followed_by_its_ends(tmp_path: Path) -> None:
    """Touched, renamed, changed at an end and deleted; nothing in between is read."""
    home, folder = Home(tmp_path / "home"), tmp_path / "in"
    folder.mkdir()
    film = folder / "lecture.mkv"
    sparse(film, media.mkv("Weirs"), LARGE_BYTES)
    home.run("add", folder)
    ident = home.ids()["lecture.mkv"]
    home.run("worker", "--drain")
    assert freshness(home) == "fresh"
    os.utime(film, (1_000_000_000, 1_000_000_000))
    assert freshness(home) == "fresh"
    assert home.run("sync-all", "--interval-min", "0").code == 0
    film.rename(folder / "talk.mkv")
    assert home.run("sync-all", "--interval-min", "0").code == 0
    assert home.ids() == {"talk.mkv": ident}
    assert home.run("check").code == 0
    refused = home.run("export", ident, "--raw", "-o", tmp_path / "out.mkv")
    assert refused.code != 0
    assert (
        f"no copy of a file of {LARGE_BYTES:,} bytes; it lies at {folder}/talk.mkv" in refused.err
    )
    (markdown,) = home.root.glob("md/file/*weirs*")
    markdown.write_text("damaged")
    assert home.run("check", "--repair").code == 0
    sparse(folder / "talk.mkv", media.mkv("Dams"), LARGE_BYTES)
    assert freshness(home) == "changed"
    home.run("sync-all", "--interval-min", "0")
    assert home.run("show", "talk.mkv").out.startswith("Dams")
    (folder / "talk.mkv").unlink()
    (folder / "a.md").write_text("# A\n\nText.\n")
    home.run("sync-all", "--interval-min", "0", "--accept-deletions")
    assert list(home.ids()) == ["a.md"]
    assert home.run("compact").code == 0
    assert home.run("backup", "create").code == 0


def test_a_film_of_some_megabytes_is_exported_whole(tmp_path: Path) -> None:
    """From its place, as no copy of it is kept."""
    home, film = Home(tmp_path / "home"), tmp_path / "a.mp4"
    film.write_bytes(media.mp4((b"\xa9nam", "Weir"), film=2_000_000))
    home.run("add", film)
    out = tmp_path / "out.mp4"
    assert home.run("export", home.ids()["a.mp4"], "--raw", "-o", out).code == 0
    assert out.read_bytes() == film.read_bytes()


def test_ignore_files_and_endings_count(tmp_path: Path) -> None:
    """`.kbignore` and `--ext` leave out films as they do notes."""
    home, folder = Home(tmp_path / "home"), library(tmp_path / "in")
    (folder / ".kbignore").write_text("*.mp3\n!flood-03.mp3\n")
    home.run("add", folder)
    assert [name for name in sorted(home.ids()) if name.endswith(".mp3")] == ["flood-03.mp3"]
    other = Home(tmp_path / "other")
    other.run("add", folder, "--ext", "md,zip")
    assert sorted(other.ids()) == ["Flood.md", "backup.zip"]


def test_a_server_takes_what_is_named(tmp_path: Path) -> None:
    """From a folder elsewhere no film is sent; one that is named is, and has a copy in the home."""
    home, folder = Home(tmp_path / "home"), library(tmp_path / "in")
    song = folder / "flood-03.mp3"
    with serving(home) as server:

        def there(*args: object) -> dict[str, Any]:
            argv = [KB, "--server", f"http://127.0.0.1:{server.port}", *map(str, args)]
            return cast("dict[str, Any]", run(argv, env=surroundings()).json)

        report = there("add", folder, "--json")
        assert (report["added"], report["skipped"], report["failed"]) == (1, 21, 0)
        assert "name it to send it" in {p["reason"].partition("; ")[2] for p in report["problems"]}
        assert there("add", song, "--json")["added"] == 1
        named = there("add", folder / "lecture on weirs.mkv", "--json")
        assert named["failed"] == 1
        assert "6,000,000,000 bytes, over the limit" in named["problems"][0]["reason"]
        hits = server.ask("GET", "/v1/search?q=flood%203&kind=audio").json["hits"]
    assert [hit["title"] for hit in hits] == ["Ada Wolf – Flood 3"]
    assert home.run("export", hits[0]["doc_id"], "--raw", "-o", tmp_path / "out.mp3").code == 0
    assert (tmp_path / "out.mp3").read_bytes() == song.read_bytes()

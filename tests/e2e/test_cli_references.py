"""Libraries of references by the real command: each entry is a doc, and stays it."""

from pathlib import Path

import msgspec
from commands import Home, record_counts, record_rows

from kb.store import docs
from kb.store.store import Store


def bib(*numbers: int, **changed: str) -> str:
    """A library of entries with these numbers."""
    return "".join(
        f"@article{{ref{n}, title = {{Ibex{n} of R{{\\'i}}o}}, author = {{Ada, B.}}, "
        f"year = {2000 + n}, keywords = {{k{n % 2}}}, note = {{{changed.get(f'ref{n}', '')}}}}}\n"
        for n in numbers
    )


def test_each_reference_is_a_doc_that_stays_the_same(tmp_path: Path) -> None:
    """A change is one of its entry; years are days, and keywords tags."""
    home, file = Home(tmp_path / "home"), tmp_path / "in" / "library.bib"
    file.parent.mkdir()
    file.write_text(bib(*range(1, 6)))
    added = home.run("add", file.parent)
    assert added.out.startswith("1 added of 1 scanned\nrecords: 5 added\n")
    before = record_rows(home)
    assert {key: title for key, (title, _) in before.items()} == {
        f"ref{n}": f"Ibex{n} of Río" for n in range(1, 6)
    }
    assert list(record_rows(home, "--on", "2003")) == ["ref3"]
    assert set(record_rows(home, "--tag", "k0")) == {"ref2", "ref4"}
    hit = home.run("search", "ibex4 río", "--json", "-k", "1").json["hits"][0]
    assert (hit["title"], hit["source"]) == ("Ibex4 of Río", f"{file}#ref4")
    file.write_text(bib(6, 5, 3, 2, 1, ref5="New"))
    report = home.run("sync-all", "--interval-min", "0", "--json").json
    assert record_counts(report) == {"added": 1, "updated": 1, "unchanged": 3, "removed": 1}
    after = record_rows(home)
    assert {key for key, row in after.items() if before.get(key) == row} == {"ref1", "ref2", "ref3"}
    assert home.run("check").out.endswith("all is well\n")


def test_a_damaged_entry_is_named_and_still_found(tmp_path: Path) -> None:
    """As text of the file; the others are docs."""
    home, file = Home(tmp_path / "home"), tmp_path / "library.bib"
    file.write_text(bib(1) + "@misc{bad, title = {Chamois,\n year = 2001}\n" + bib(2))
    added = home.run("add", file)
    assert "entry bad at line 2 is damaged" in added.out + added.err
    assert set(record_rows(home)) == {"ref1", "ref2"}
    hit = home.run("search", "chamois", "--mode", "lexical", "--json").json["hits"][0]
    assert hit["source"] == str(file)


def test_a_library_that_was_one_doc_moves_over(tmp_path: Path) -> None:
    """What an earlier kb took for plain text is split at the next look."""
    home, file = Home(tmp_path / "home"), tmp_path / "library.ris"
    file.write_text("".join(f"TY  - BOOK\nTI  - Ibex{n}\nID  - {n}\nER  - \n" for n in range(3)))
    home.run("add", file)
    found = record_rows(home)
    assert {key: title for key, (title, _) in found.items()} == {
        str(n): f"Ibex{n}" for n in range(3)
    }
    whole = home.ids()["library.ris"]
    with Store.open(home.root / "store") as store, store.write() as txn:
        doc = docs.get(txn, whole)
        assert doc is not None
        docs.replace(txn, msgspec.structs.replace(doc, mime="text/plain", canonicalizer="plain-3"))
    again = home.run("add", file, "--json").json
    assert record_counts(again) == {"unchanged": 3}
    assert record_rows(home) == found

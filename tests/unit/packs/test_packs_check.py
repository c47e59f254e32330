"""What an author is told of a pack, and how it is drawn."""

from pathlib import Path

from packs_folder import doc, pack_of

from kb.knowledge.packs.check import check
from kb.knowledge.packs.graph import graph


def test_a_pack_without_faults(tmp_path: Path) -> None:
    """Links up and links across are no cycle."""
    pack = pack_of(
        tmp_path,
        doc("a", related=[("part_of", "b"), ("references", "c")]),
        doc("b", related=[("depends_on", "c"), ("related_to", "a")]),
        doc("c", related=[("references", "a"), ("defines", "b")]),
    )
    assert check(pack) == []


def test_every_fault_is_found(tmp_path: Path) -> None:
    """Each with its code, its doc and what is wrong."""
    (tmp_path / "other.md").write_text("# Other")
    docs = [
        doc("a", related=[("likes", "b"), ("extends", "lost")]),
        doc("b", id="p.a", source_path="docs/a.md"),
        doc("b", source_path="other.md", title=" "),
        doc("gone"),
        doc("out", source_path="../x.md"),
        doc("odd"),
    ]
    pack = pack_of(tmp_path, *docs, bodies=False)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("# A")
    (tmp_path / "docs/odd.md").write_bytes(b"caf\xe9 au lait, d\xe9j\xe0 vu")
    assert [(found.code, found.doc) for found in check(pack)] == [
        ("dangling_target", "a"),
        ("duplicate_id", "b"),
        ("duplicate_selector", "b"),
        ("duplicate_source_path", "b"),
        ("empty_title", "b"),
        ("missing_body", "gone"),
        ("unknown_edge_type", "a"),
        ("unreadable_body", "odd"),
        ("unsafe_path", "out"),
    ]
    assert all(found.detail for found in check(pack))


def cycles(folder: Path, **targets: str) -> list[str]:
    docs = [
        doc(name, related=[("part_of", target) for target in to]) for name, to in targets.items()
    ]
    return [found.detail.partition(": ")[2] for found in check(pack_of(folder, *docs))]


def test_cycles(tmp_path: Path) -> None:
    """Each link that closes a way round is named once, with the way."""
    assert cycles(tmp_path, a="a") == ["a > a"]
    assert cycles(tmp_path, a="b", b="c", c="a") == ["a > b > c > a"]
    assert cycles(tmp_path, a="b", b="c", c="b") == ["b > c > b"]
    assert cycles(tmp_path, a="bc", b="d", c="d", d="") == []
    assert cycles(tmp_path, a="b", b="a", c="d", d="c") == ["a > b > a", "c > d > c"]


def test_a_cycle_of_several_types(tmp_path: Path) -> None:
    """Part of, depends on and extends all lead upwards."""
    pack = pack_of(
        tmp_path,
        doc("a", related=[("part_of", "b")]),
        doc("b", related=[("depends_on", "c")]),
        doc("c", related=[("extends", "a")]),
    )
    assert [(found.code, found.doc) for found in check(pack)] == [("cycle", "a")]


def test_a_long_chain_and_a_long_cycle(tmp_path: Path) -> None:
    """Depth is no matter; a long way is shown cut."""
    rows = [doc(f"d{n}", related=[("part_of", f"d{n + 1}")]) for n in range(3000)]
    chain = pack_of(tmp_path, *rows, doc("d3000"), bodies=False)
    assert {found.code for found in check(chain)} == {"missing_body"}
    ring = pack_of(tmp_path, *rows, doc("d3000", related=[("part_of", "d0")]), bodies=False)
    found = [found for found in check(ring) if found.code == "cycle"]
    assert len(found) == 1
    assert found[0].detail.endswith("d10 > d11 > … > d0")


def test_graphs(tmp_path: Path) -> None:
    """Docs by selector, links by their ends; what is not there is not drawn."""
    pack = pack_of(
        tmp_path,
        doc("b", title='The "b" \\ <i>|x|</i>\n`c`'),
        doc("a", related=[("extends", "b"), ("defines", "p.b"), ("extends", "lost")]),
        doc("it's", title=""),
    )
    assert graph(pack, "mermaid") == (
        "flowchart LR\n"
        '  d0["A"]\n'
        '  d1["The #34;b#34; #92; #60;i#62;#124;x#124;#60;/i#62;#10;#96;c#96;"]\n'
        '  d2["it\'s"]\n'
        "  d0 -->|defines| d1\n"
        "  d0 -->|extends| d1\n"
    )
    assert graph(pack, "dot") == (
        'digraph "p" {\n'
        "  rankdir=LR;\n"
        '  "a" [label="A"];\n'
        '  "b" [label="The \\"b\\" \\\\ <i>|x|</i> `c`"];\n'
        '  "it\'s" [label="it\'s"];\n'
        '  "a" -> "b" [label="defines"];\n'
        '  "a" -> "b" [label="extends"];\n'
        "}\n"
    )

"""What a pack answers: filters, scores, neighbours, and the few words for an agent."""

import json
from pathlib import Path

import msgspec
import pytest
from packs_folder import doc, pack_of

from kb.knowledge.packs.brief import brief, variable_name, variables, warnings_of
from kb.knowledge.packs.load import Pack, UnknownPackDoc
from kb.knowledge.packs.manifest import EDGE_TYPES, EdgeType, PackFinding
from kb.knowledge.packs.query import PackFilter, list_docs, neighbors, search


@pytest.fixture
def pack(tmp_path: Path) -> Pack:
    return pack_of(
        tmp_path,
        doc("b.two", tags=["x", "y"], kind="Domain Model", related=[("part_of", "a.one")]),
        doc("a.one", tags=["x"], related=[("extends", "docs/b.two.md"), ("extends", "lost")]),
        doc("a.three", related=[("references", "p.b.two"), ("part_of", "p.b.two")]),
    )


def names(pack: Pack, **wanted: object) -> list[str]:
    return [found.selector for found in list_docs(pack, PackFilter(**wanted))]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, ["b.two", "a.one", "a.three"]),
        ({"tags": ("x",)}, ["b.two", "a.one"]),
        ({"tags": ("y", "x")}, ["b.two"]),
        ({"tags": ("X",)}, []),
        ({"kind": "domain-model"}, ["b.two"]),
        ({"kind": "domain"}, []),
        ({"selector_prefix": "a."}, ["a.one", "a.three"]),
        ({"selector_prefix": ""}, ["b.two", "a.one", "a.three"]),
        ({"related_to": "lost"}, ["a.one"]),
        ({"related_to": "b.two"}, ["a.one", "a.three"]),
        ({"related_to": "p.b.two"}, ["a.one", "a.three"]),
        ({"related_to": "docs/b.two.md"}, ["a.one"]),
        ({"related_to": "b.two", "edge_type": "part_of"}, ["a.three"]),
        ({"related_to": "lost", "edge_type": "part_of"}, []),
        ({"related_to": "nobody"}, []),
        ({"edge_type": "defines"}, ["b.two", "a.one", "a.three"]),
        ({"tags": ("x",), "selector_prefix": "a", "kind": "reference"}, ["a.one"]),
    ],
)
def test_a_filter(pack: Pack, wanted: dict[str, object], found: list[str]) -> None:
    """All that is said must hold; docs stay in the order of the manifest."""
    assert names(pack, **wanted) == found


PLAIN = {"id": "-", "selector": "-", "title": "-", "summary": "-", "tags": []}


@pytest.mark.parametrize(
    ("field", "label", "weight"),
    [
        ("id", "id", 100),
        ("selector", "selector", 90),
        ("title", "title", 80),
        ("tags", "tag", 70),
        ("summary", "summary", 60),
    ],
)
def test_what_a_field_weighs(tmp_path: Path, field: str, label: str, weight: int) -> None:
    """Held it counts once, equal it counts twice, whatever the case and the space around."""

    def score(text: str) -> tuple[int, tuple[str, ...]]:
        said = [text] if field == "tags" else text
        pack = pack_of(tmp_path, doc("one", **{**PLAIN, field: said}))
        found = search(pack, " green TEA ")
        return (found[0].score, found[0].matched) if found else (0, ())

    assert score("a Green Tea pot") == (weight, (label,))
    assert score(" Green tea ") == (2 * weight, (label,))
    assert score("green  tea") == (0, ())


def test_scores_add_up_and_each_tag_counts(tmp_path: Path) -> None:
    """The fields that match are named once each, sorted."""
    said = {**PLAIN, "title": "tea", "summary": "on tea", "tags": ["tea", "teapot", "cup"]}
    hit = search(pack_of(tmp_path, doc("one", **said)), "tea")[0]
    assert hit.score == 160 + 60 + 140 + 70
    assert hit.matched == ("summary", "tag", "title")


def test_hits_go_by_score_and_then_by_selector(tmp_path: Path) -> None:
    """The order of the manifest has no say."""
    pack = pack_of(
        tmp_path,
        doc("c", summary="tea"),
        doc("b", title="on tea"),
        doc("d", title="tea"),
        doc("a", title="tea time"),
        doc("e", title="coffee"),
    )
    assert [(hit.document.selector, hit.score) for hit in search(pack, "tea")] == [
        ("d", 160),
        ("c", 120),
        ("a", 80),
        ("b", 80),
    ]


def test_a_query_of_nothing_finds_all(pack: Pack) -> None:
    """A point for each of the four fields and for each tag; no field is named."""
    hits = search(pack, "  ")
    assert [(hit.document.selector, hit.score, hit.matched) for hit in hits] == [
        ("b.two", 6, ()),
        ("a.one", 5, ()),
        ("a.three", 4, ()),
    ]
    assert [hit.document.selector for hit in search(pack, "", PackFilter(tags=("y",)))] == ["b.two"]


@pytest.mark.parametrize("kind", EDGE_TYPES)
def test_neighbours_by_type(tmp_path: Path, kind: EdgeType) -> None:
    """Of one type only those; of all, by selector and then by the type's name."""
    both = [(name, "two") for name in EDGE_TYPES]
    pack = pack_of(tmp_path, doc("one", related=[*both, (kind, "p.two")]), doc("two"))
    found = neighbors(pack, "one", kind)
    assert [(edge.type, edge.target.selector) for edge in found.edges] == [(kind, "two")]
    assert [edge.type for edge in neighbors(pack, "one").edges] == sorted(EDGE_TYPES)


def test_neighbours_in_order_without_what_is_not_there(tmp_path: Path) -> None:
    """A link that leads nowhere is told; one that is there twice is shown once."""
    related = [("extends", "z"), ("part_of", "a"), ("extends", "docs/a.md"), ("extends", "lost")]
    pack = pack_of(tmp_path, doc("one", related=[*related, ("extends", "a")]), doc("z"), doc("a"))
    found = neighbors(pack, "p.one")
    assert [(edge.target.selector, edge.type) for edge in found.edges] == [
        ("a", "extends"),
        ("a", "part_of"),
        ("z", "extends"),
    ]
    assert [finding.detail for finding in found.dangling] == [
        "its extends link leads to lost, which the pack does not have"
    ]
    assert neighbors(pack, "one", "part_of").dangling == ()
    with pytest.raises(UnknownPackDoc):
        neighbors(pack, "nobody")


def test_an_agent_is_shown_what_it_chooses_by(pack: Pack) -> None:
    """Neither paths nor times nor notes on links."""
    said = json.loads(msgspec.json.encode(brief(pack.require("b.two"))))
    assert said == {
        "id": "p.b.two",
        "selector": "b.two",
        "title": "B.Two",
        "summary": "",
        "kind": "domain_model",
        "tags": ["x", "y"],
        "related": [{"type": "part_of", "target": "a.one"}],
        "links": 1,
    }


def test_a_doc_of_many_words_and_links_is_shown_short(tmp_path: Path) -> None:
    """It says how many links there are."""
    related = [("references", str(n)) for n in range(60)]
    pack = pack_of(tmp_path, doc("one", summary="s" * 2000, related=related))
    found = brief(pack.require("one"))
    assert (len(found.summary), len(found.related), found.links) == (1000, 50, 60)


@pytest.mark.parametrize(
    ("head", "selector", "name"),
    [
        ("pkg:nenjo-ai.packages.core", "domain.nenjo", "pkg.nenjo_ai.packages.core.domain.nenjo"),
        ("local:a b", "x-y.z/w", "local.a_b.x_y.z_w"),
        ("pkg:标", "茶", "pkg.标.茶"),
    ],
)
def test_a_variables_name(head: str, selector: str, name: str) -> None:
    """Dots stay; what a name may not hold becomes an underscore."""
    assert variable_name(head, selector) == name


def test_variables(tmp_path: Path) -> None:
    """Sorted, a line each; a second doc of a name is told, and a pack may have no selector."""
    pack = pack_of(
        tmp_path,
        doc("b-b", summary="Two\nlines."),
        doc("b_b"),
        doc("a", summary="s" * 1000, tags=["t"]),
    )
    said = variables(pack)
    assert list(said.variables) == ["pack.p.a", "pack.p.b_b"]
    assert said.variables["pack.p.b_b"] == "B-B (reference). Two lines. Read as b-b."
    assert len(said.variables["pack.p.a"]) < 400
    assert said.warnings == ("b_b has no variable, because another doc has pack.p.b_b, too",)


def test_warnings_are_few() -> None:
    """Twenty, and how many more."""
    found = [PackFinding(code="cycle", doc=str(n), detail="d") for n in range(25)]
    assert warnings_of(found[:20]) == tuple(f"{n}: d" for n in range(20))
    assert warnings_of(found)[20:] == ("and 5 more, which a check of the pack lists",)

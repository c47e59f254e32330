"""What people put into a query besides words: operators, typing errors, beginnings of words."""

from pathlib import Path

import pytest
from commands import KB, Home, run

NOTES = {
    "kitchen/kettle.md": "# Kettle\n\nThe kettle boils water with steam. The brown fox is away.",
    "kitchen/pot.md": "---\ntags: [warm/tea]\n---\n# Tea pot\n\nBoiling water is for the pot.",
    "fleet/cluster.md": "# Cluster\n\nKubernetes schedules containers. Brown was the fox.",
    "fleet/水.md": "# 水壶\n\n水壶里的水烧开了。",
    "url.md": "# Ports\n\nThe option --drain of tar -x writes no steam, since rev12.",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with these notes."""
    folder = tmp_path_factory.mktemp("query") / "notes"
    for name, text in NOTES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    home = Home(tmp_path_factory.mktemp("home"))
    assert home.run("add", "-r", folder).code == 0
    return home


def found(home: Home, query: str, *options: str) -> set[str]:
    """The names of the files that are found, in each mode that is asked."""
    hits = home.run("search", query, "--json", *options).json["hits"]
    return {Path(hit["source"]).stem for hit in hits}


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense"])
@pytest.mark.parametrize(
    ("query", "names"),
    [
        ('"brown fox"', {"kettle"}),
        ('fox "Brown Fox" water', {"kettle"}),
        ('water -"brown fox" -drain -cluster -水壶', {"pot"}),
        ("water title:tea", {"pot"}),
        ("fox source:fleet", {"cluster", "水"}),
        ("water source:kitchen/pot.md", {"pot"}),
        ("water tag:warm", {"pot"}),
        ("boiling water steam -tag:warm -source:fleet", {"kettle", "url"}),
        ('water fox -title:"tea pot" -title:ports -since:2020', set()),
        ("water fox -kind:url -until:2020 -source:kitchen -title:ports", {"cluster", "水"}),
        ('"水壶里的水"', {"水"}),
    ],
)
def test_operators_hold_in_every_mode(home: Home, query: str, names: set[str], mode: str) -> None:
    """Only what has it all is found; by words alone a passage also needs one of the words."""
    got = found(home, query, "--mode", mode)
    assert got == names if mode != "lexical" else got <= names
    if mode == "lexical" and names:
        assert got & names


def test_what_is_left_out_is_told(home: Home) -> None:
    """A phrase that is nowhere finds nothing, and a warning says why."""
    nowhere = home.run("search", '"fox brown"', "--json").json
    assert nowhere["hits"] == []
    assert nowhere["warnings"] == [
        'no passage has "fox brown"; without quotes its words are searched for'
    ]
    without = home.run("search", "water -steam", "--json").json
    assert "without what has: steam" in without["warnings"]
    assert without["query"] == "water -steam"


@pytest.mark.parametrize(
    ("query", "warning"),
    [
        ('"kuberntes"', 'no passage has "kuberntes"; without quotes its words are searched for'),
        ("kuberntes title:nowhere", "no doc has nowhere in its title"),
    ],
)
def test_what_can_find_nothing_is_not_said_to_be_respelled(
    home: Home, query: str, warning: str
) -> None:
    """No word is told as searched for where a phrase or a title leaves nothing to search."""
    nowhere = home.run("search", query, "--json").json
    assert nowhere["hits"] == []
    assert nowhere["warnings"] == [warning]


def test_verbatim_text_has_no_operators(home: Home) -> None:
    """What other programs paste into a query."""
    assert "kettle" in found(home, "water -steam", "--verbatim")
    assert len(found(home, 'tag:zzz "no such phrase"', "--verbatim")) == len(NOTES)


@pytest.mark.parametrize(
    ("typed", "meant", "name"),
    [
        ("kuberntes", "kubernetes", "cluster"),
        ("Kuberentes schedules", "kubernetes", "cluster"),
        ("sched", "schedules", "cluster"),
        ("the ketle boils", "kettle", "kettle"),
    ],
)
def test_a_word_that_no_passage_has(home: Home, typed: str, meant: str, name: str) -> None:
    """A typing error, or the beginning of the last word, stands for what passages have."""
    result = home.run("search", typed, "--json", "--mode", "lexical").json
    assert Path(result["hits"][0]["source"]).stem == name
    (warning,) = [line for line in result["warnings"] if "has the word" in line]
    assert warning.endswith(f"; searched for {meant}")


@pytest.mark.parametrize(
    "query",
    ["kettle boils", "zzyzx", "ab", "k8s", "水壷", "rev", "does the kettle boil"],
)
def test_other_words_stay(home: Home, query: str) -> None:
    """Words that are there, short ones, those of questions, and those that nothing is near."""
    warnings = home.run("search", query, "--json").json["warnings"]
    assert [line for line in warnings if "has the word" in line] == []


def test_a_word_that_the_model_knows_is_meant(tmp_path: Path) -> None:
    """What notes say otherwise is found by meaning, and no word that merely looks alike."""
    at = [KB, "--home", tmp_path / "home"]
    notes = {
        "salary.md": "# Salary\n\nThe company pays me 3000 euros a month for my work.",
        "page.md": "# Printing\n\nEach page is printed on both sides; monthly reports, too.",
    }
    for name, text in notes.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert run([*at, "add", *(tmp_path / name for name in notes)]).code == 0
    answer = run([*at, "search", "what is my wage", "--json"]).json
    assert Path(answer["hits"][0]["source"]).stem == "salary"
    assert answer["warnings"] == []
    unknown = run([*at, "search", "a report each monht", "--json"]).json
    assert "no passage has the word monht; searched for month" in unknown["warnings"]
    begun = run([*at, "search", "print", "--json"]).json
    assert Path(begun["hits"][0]["source"]).stem == "page"
    alone = run([*at, "search", "sal", "--json"]).json
    assert alone["warnings"] == ["no passage has the word sal; searched for salary too"]
    assert Path(alone["hits"][0]["source"]).stem == "salary"

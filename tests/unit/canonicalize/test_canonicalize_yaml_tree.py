"""YAML as a tree of texts, and front matter as such a tree."""

import pytest

from kb.intake.canonicalize.frontmatter import front_tree
from kb.intake.canonicalize.yaml_tree import NotYaml, yaml_tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("", None),
        ("~", None),
        ("one", "one"),
        ("[1.10, yes, 2024-05-06, null, '']", ["1.10", "yes", "2024-05-06", None, ""]),
        ("a: 1\nb:\nc: {d: [e, {f: g}]}", {"a": "1", "c": {"d": ["e", {"f": "g"}]}}),
        ("a: 'null'", {"a": "null"}),
        ("- |\n  two\n  lines\n- > \n  one\n  line", ["two\nlines\n", "one line"]),
        ("a: !!python/name:os.system x", {"a": "x"}),
    ],
)
def test_scalars_stay_as_written(text: str, tree: object) -> None:
    """Nothing is taken for a number, a date or an object."""
    assert yaml_tree(text) == tree


@pytest.mark.parametrize(
    "text",
    ["a: &x 1\nb: *x", "a: 1\na: 2", "[a]: b", "a\n---\nb", "[" * 33 + "]" * 33, "a: b: c", "\x00"],
)
def test_what_is_refused(text: str) -> None:
    """Aliases, keys twice or that are no texts, several documents, depth, and what is no YAML."""
    with pytest.raises(NotYaml):
        yaml_tree(text)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("---\na: [b, {c: 1}]\n---\nx", {"a": ["b", {"c": "1"}]}),
        ("+++\na = 1\nb = [{c = true, d = 2024-05-06}]\n+++\nx", None),
        ("---\na: &x 1\nb: *x\n---\n", {}),
        ("---\na: 1\na: 2\n---\n", {}),
        ("no front matter", {}),
        ("---\nunclosed: 1\n", {}),
        ("", {}),
    ],
)
def test_front_matter_as_a_tree(text: str, tree: dict[str, object] | None) -> None:
    """Every field with what is in it, as texts; nothing of what cannot be read."""
    of_toml = {"a": "1", "b": [{"c": "True", "d": "2024-05-06"}]}
    assert front_tree(text) == (of_toml if tree is None else tree)

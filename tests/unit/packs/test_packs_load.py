"""Both forms of a manifest: what is derived, what is refused, and what is told."""

import json
import os
from pathlib import Path

import pytest
from packs_folder import doc, pack_of

from kb.errors import KbError, Refused, TooLarge, Unparsable, Unreadable, UsageError
from kb.knowledge.packs import load
from kb.knowledge.packs.brief import variables
from kb.knowledge.packs.load import UnknownPack, UnknownPackDoc, load_pack
from kb.knowledge.packs.manifest import EDGE_TYPES, PackEdge, derived_selector, normal_kind

PACKAGE = """
schema: pack.v1
manifest:
  pack_id: nenjo.core
  selector: pkg:nenjo-ai.packages.knowledge.core
  version: 0.1.0
  docs:
    - selector: domain.nenjo
      source_path: docs/domain/nenjo.md
      title: Nenjo
      summary: What the platform is.
      kind: domain
      tags: [domain:nenjo]
      related: []
"""
DOC = "{source_path: docs/a/b.md, title: T, summary: S}"


def package(folder: Path, text: str, name: str = "manifest.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_package_with_a_selector_and_without_an_id(tmp_path: Path) -> None:
    """The id is derived, the body is read, and the pack's selector names the variable."""
    path = package(tmp_path, PACKAGE)
    (tmp_path / "docs/domain").mkdir(parents=True)
    (tmp_path / "docs/domain/nenjo.md").write_text("# Nenjo\n\nWhat is known.")
    pack = load_pack(path)
    found = pack.read("domain.nenjo")
    assert found.document.id == "nenjo.core.domain.nenjo"
    assert found.content == "# Nenjo\n\nWhat is known."
    assert pack.selector == "pkg:nenjo-ai.packages.knowledge.core"
    assert list(variables(pack).variables) == ["pkg.nenjo_ai.packages.knowledge.core.domain.nenjo"]
    assert (pack.manifest.version, pack.manifest.schema_version) == ("0.1.0", 1)
    assert (pack.form, pack.findings) == ("package", ())


def test_what_a_package_does_not_say(tmp_path: Path) -> None:
    """Version, root, kind and lists have defaults; selector and id come from the path."""
    pack = load_pack(package(tmp_path, f"manifest: {{pack_slug: p, docs: [{DOC}]}}"))
    said = pack.manifest
    assert (said.pack_id, said.version, said.schema_version) == ("p", "1", 1)
    assert (said.root_uri, said.content_hash, pack.selector) == ("pkg://p/", "", None)
    found = said.docs[0]
    assert (found.id, found.selector, found.kind) == ("p.a.b", "a.b", "reference")
    assert (found.tags, found.related, found.updated_at) == ((), (), "")


def test_root_and_selector_inside_win_over_those_outside(tmp_path: Path) -> None:
    """Either place will do; the inner one is nearer."""
    outer = "selector: out\nroot_uri: out:/\nmanifest: {pack_id: p%s}\n"
    pack = load_pack(package(tmp_path, outer % ""))
    assert (pack.selector, pack.manifest.root_uri) == ("out", "out:/")
    pack = load_pack(package(tmp_path, outer % ", selector: in, root_uri: 'in:/'"))
    assert (pack.selector, pack.manifest.root_uri) == ("in", "in:/")


@pytest.mark.parametrize(
    ("path", "ident", "selector"),
    [
        ("docs/domain/nenjo.md", "", "domain.nenjo"),
        ("domain/nenjo.md", "", "domain.nenjo"),
        ("docs/docs/x.md", "", "docs.x"),
        ("a/docs/x.txt", "", "a.docs.x.txt"),
        ("docs/.md", "p.rest", "rest"),
        ("docs/.md", "other.rest", "other.rest"),
    ],
)
def test_a_selector_is_derived(path: str, ident: str, selector: str) -> None:
    """From the source path, or from the id where that leaves nothing."""
    assert derived_selector(path, "p", ident) == selector


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("domain", "domain"),
        ("  Domain Model! ", "domain_model"),
        ("a--b__c", "a_b_c"),
        ("", "reference"),
        ("!?", "reference"),
        ("标", "reference"),
    ],
)
def test_a_kind_is_a_slug(written: str, kind: str) -> None:
    """Lower-case letters and digits with single underscores between them."""
    assert normal_kind(written) == kind


def test_a_folder_of_docs(tmp_path: Path) -> None:
    """The root defaults to the folder, blanks count as nothing, a later key is passed over."""
    pack = pack_of(tmp_path / "a b", doc("one"), root_uri="  ", later={"x": 1})
    assert pack.form == "filesystem"
    assert pack.manifest.root_uri == f"file://{tmp_path}/a%20b/"
    assert pack.read("p.one").content == "# One\n"
    assert pack.require("docs/one.md") is pack.require("one") is pack.require("p.one")
    with pytest.raises(UnknownPackDoc) as raised:
        pack.require("two")
    assert raised.value.exit_code == 4


@pytest.mark.parametrize("missing", ["id", "selector", "source_path", "title", "kind", "tags"])
def test_a_folders_manifest_says_all_of_a_doc(tmp_path: Path, missing: str) -> None:
    """Nothing but the time is derived there; the error names the doc and the field."""
    row = doc("two")
    del row[missing]
    with pytest.raises(Unparsable) as raised:
        pack_of(tmp_path, doc("one"), row, bodies=False)
    assert "docs[1]" in str(raised.value)
    assert missing in str(raised.value)


@pytest.mark.parametrize("key", ["type", "edge_type"])
@pytest.mark.parametrize("kind", EDGE_TYPES)
def test_every_type_of_link_under_either_name(tmp_path: Path, kind: str, key: str) -> None:
    """All eight are read, and kept in their order."""
    related = f"[{{{key}: {kind}, target: t, description: why}}, {{{key}: {kind}, target: u}}]"
    text = f"manifest: {{pack_id: p, docs: [{DOC[:-1]}, related: {related}}}]}}"
    edges = load_pack(package(tmp_path, text)).manifest.docs[0].related
    assert edges == (
        PackEdge(type=kind, target="t", description="why"),  # type: ignore[arg-type]
        PackEdge(type=kind, target="u"),  # type: ignore[arg-type]
    )


def test_a_link_of_an_unknown_type_is_left_out_and_told(tmp_path: Path) -> None:
    """The rest of the pack is loaded."""
    pack = pack_of(tmp_path, doc("one", related=[("likes", "x"), ("extends", "y")]))
    assert [edge.target for edge in pack.manifest.docs[0].related] == ["y"]
    assert [(found.code, found.doc) for found in pack.findings] == [("unknown_edge_type", "one")]
    assert "likes" in pack.findings[0].detail


def test_a_later_schema_is_read_and_told(tmp_path: Path) -> None:
    """What is known of it may do."""
    pack = pack_of(tmp_path, doc("one"), schema_version=2)
    assert pack.manifest.schema_version == 2
    assert [found.code for found in pack.findings] == ["unknown_schema"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "manifest: {pack_id: p, docs: [{source_path: a, title: [], summary: s}]}",
            "docs[0].title",
        ),
        ("manifest: {pack_id: p, docs: 7}", "manifest.docs"),
        ("manifest: {pack_id: p, schema_version: one}", "manifest.schema_version"),
        ("manifest: {pack_id: p, docs: [{source_path: a, title: t}]}", "summary"),
        ("manifest: {pack_id: p, docs: [{source_path: a, title: t, summary: null}]}", "summary"),
        (f"manifest: {{pack_id: p, docs: [{DOC[:-1]}, related: [{{target: x}}]}}]}}", "related[0]"),
        (f"manifest: {{pack_id: p, docs: [{DOC[:-1]}, tags: [[x]]}}]}}", "docs[0].tags[0]"),
        ("manifest: {docs: []}", "pack_id"),
        ("manifest: {pack_id: " + "p" * 201 + "}", "manifest.pack_id"),
        ("manifest: {pack_id: p, docs: [{title: " + "t" * 1001 + "}]}", "docs[0].title"),
        ("manifest: {pack_id: p, pack_slug: q}", "pack_slug"),
        ("pack_id: p", "manifest"),
        ("[a, b]", "object"),
        ("", "object"),
        ("a:\n  b: [c]]", "line 2"),
        ("a: 1\nb: 2\na: 3", "line 3"),
        ("? [a]\n: b", "key"),
        ("a: 1\n---\nb: 2", "document"),
        ("\x01", "characters"),
        ("a: " + "[" * 40 + "]" * 40, "nested"),
    ],
)
def test_a_package_that_is_wrong_says_where(tmp_path: Path, text: str, said: str) -> None:
    """Exit code 1, with the file and the field or line."""
    path = package(tmp_path, text)
    with pytest.raises(Unparsable) as raised:
        load_pack(path)
    assert said in str(raised.value)
    assert str(path) in str(raised.value)
    assert raised.value.exit_code == 1


def test_a_yaml_bomb_is_refused_at_its_first_alias(tmp_path: Path) -> None:
    """Nothing grows."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    with pytest.raises(Unparsable, match="line 2: it uses an alias"):
        load_pack(package(tmp_path, "\n".join(lines)))


def test_tags_of_yaml_make_nothing(tmp_path: Path) -> None:
    """A tag that would call something is passed over; what it stands on is a text."""
    text = f"manifest: {{pack_id: !!python/name:os.system p, docs: [{DOC}]}}"
    assert load_pack(package(tmp_path, text)).manifest.pack_id == "p"
    with pytest.raises(Unparsable):
        load_pack(package(tmp_path, "manifest: !!python/object/apply:os.system [echo]"))


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"pack_id": 1}', b"\xff", b"[" * 100_000, b""])
def test_a_folders_manifest_that_is_wrong(tmp_path: Path, data: bytes) -> None:
    """It is named, whatever it holds."""
    (tmp_path / "manifest.json").write_bytes(data)
    with pytest.raises(Unparsable, match=r"manifest\.json"):
        load_pack(tmp_path)


def test_a_manifest_may_not_be_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in bytes nor in docs."""
    pack = {"pack_id": "p", "docs": [doc("one")] * (load.DOCS_MAX + 1)}
    (tmp_path / "manifest.json").write_text(json.dumps(pack))
    with pytest.raises(Unparsable, match="docs"):
        load_pack(tmp_path)
    monkeypatch.setattr(load, "MANIFEST_BYTES_MAX", 100)
    with pytest.raises(TooLarge):
        load_pack(tmp_path)


def test_which_manifest_is_meant(tmp_path: Path) -> None:
    """A folder has one; a file says its form by its name; what is not there is not found."""
    with pytest.raises(UnknownPack):
        load_pack(tmp_path)
    with pytest.raises(UnknownPack):
        load_pack(tmp_path / "nothing")
    path = package(tmp_path, "manifest: {pack_id: y}", "manifest.yml")
    assert load_pack(tmp_path).path == path
    with pytest.raises(UsageError, match=r"manifest\.yml and manifest\.json"):
        pack_of(tmp_path)
    assert load_pack(path).manifest.pack_id == "y"
    with pytest.raises(UsageError):
        load_pack(package(tmp_path, "x", "manifest.toml"))


@pytest.fixture
def around(tmp_path: Path) -> Path:
    """A folder for a pack, with a secret beside it and things that are no files in it."""
    (tmp_path / "secret.md").write_text("secret")
    folder = tmp_path / "pack"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs/real.md").write_text("real")
    (folder / "docs/out.md").symlink_to(tmp_path / "secret.md")
    (folder / "up").symlink_to(tmp_path)
    (folder / "docs/in.md").symlink_to("real.md")
    (folder / "docs/loop.md").symlink_to("loop.md")
    os.mkfifo(folder / "docs/fifo.md")
    return folder


@pytest.mark.parametrize("form", ["package", "filesystem"])
@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("../secret.md", Refused),
        ("docs/../../secret.md", Refused),
        ("docs/../docs/real.md", Refused),
        ("./docs/real.md", Refused),
        ("/etc/passwd", Refused),
        ("", Refused),
        (".", Refused),
        ("docs/out.md", Refused),
        ("up/secret.md", Refused),
        ("docs/fifo.md", Unreadable),
        ("docs", Unreadable),
        ("docs/loop.md", Unreadable),
        ("docs/gone.md", Unreadable),
        ("docs/real.md/x", Unreadable),
        ("x" * 300, Unreadable),
    ],
)
def test_a_body_lies_inside_the_pack(
    around: Path, path: str, error: type[KbError], form: str
) -> None:
    """In both forms, what leads out or is no regular file is not opened, and the doc is told."""
    if form == "filesystem":
        pack = pack_of(around, doc("one", source_path=path), bodies=False)
    else:
        text = f"{{id: p.one, source_path: {json.dumps(path)}, title: T, summary: S}}"
        pack = load_pack(package(around, f"manifest: {{pack_id: p, docs: [{text}]}}"))
    with pytest.raises(error):
        pack.body(pack.manifest.docs[0])
    found = pack.read("p.one")
    assert found.content is None
    assert len(found.warnings) == 1
    assert str(around) not in found.warnings[0]


def test_links_inside_the_pack_are_followed(around: Path) -> None:
    """Also where the pack's own folder is reached by a link."""
    pack_of(around, doc("one", source_path="docs/in.md"), bodies=False)
    assert load_pack(around).read("one").content == "real"
    assert load_pack(around / "up" / "pack").read("one").content == "real"


def test_a_body_is_bounded_and_its_bytes_are_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is no UTF-8 is replaced, with a warning; what is too large is not read."""
    pack = pack_of(tmp_path, doc("one"))
    (tmp_path / "docs/one.md").write_bytes("Öl für alle, naïve".encode() * 20 + b" \xff.")
    found = pack.read("one")
    assert found.content is not None
    assert found.content.endswith("\ufffd.")
    assert "not UTF-8" in found.warnings[0]
    monkeypatch.setattr(load, "BODY_BYTES_MAX", 10)
    with pytest.raises(TooLarge):
        pack.body(pack.manifest.docs[0])


def test_a_pack_of_five_thousand_docs(tmp_path: Path) -> None:
    """Every doc is found by each of its names."""
    rows = [doc(f"d{n}", related=[("references", f"d{n - 1}")]) for n in range(1, 5001)]
    pack = pack_of(tmp_path, *rows, bodies=False)
    assert len(pack.manifest.docs) == 5000
    assert all(pack.find(row["id"]) is pack.find(row["source_path"]) for row in rows)

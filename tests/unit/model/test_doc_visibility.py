"""Who may know that a doc exists."""

import pytest
from builders import make_doc
from hypothesis import given
from hypothesis import strategies as st

from kb.model.doc import OPERATOR, VISIBILITIES, Scope, Visibility

ADA, BOB, NOBODY = Scope(user="ada"), Scope(user="bob"), Scope(user=None)


@pytest.mark.parametrize(
    ("visibility", "expected"),
    [
        ("public", [True, True, True, True]),
        ("shared", [True, True, False, True]),
        ("private", [True, False, False, True]),
    ],
)
def test_the_only_door(visibility: Visibility, expected: list[bool]) -> None:
    """Public is for all, shared for named users, private for its owner; operators see all."""
    doc = make_doc(visibility=visibility, owner="ada")
    assert [doc.visible_to(scope) for scope in (ADA, BOB, NOBODY, OPERATOR)] == expected


def test_an_anonymous_caller_owns_nothing() -> None:
    """No owner's name makes a private doc visible to a caller without one."""
    for owner in ("", "None", "local"):
        assert not make_doc(visibility="private", owner=owner).visible_to(NOBODY)


NAMES = st.sampled_from(["", "ada", "bob", "local", "public", "shared", "private:ada"]) | st.text()


@given(
    visibility=st.sampled_from(VISIBILITIES),
    owner=NAMES,
    user=st.none() | NAMES,
    operator=st.booleans(),
)
def test_who_reads_the_audience_sees_the_doc(
    visibility: Visibility, owner: str, user: str | None, operator: bool
) -> None:
    """Reading by audience lets through what the door does, whatever people are called."""
    doc = make_doc(visibility=visibility, owner=owner)
    scope = Scope(user=user, operator=operator)
    assert scope.reads(doc.audience) == doc.visible_to(scope)


def test_every_visibility_is_decided() -> None:
    """The list of visibilities is the one that the type names."""
    assert VISIBILITIES == ("public", "shared", "private")


def test_a_doc_cannot_be_changed() -> None:
    """What crosses rooms is frozen."""
    with pytest.raises(AttributeError):
        make_doc().owner = "bob"  # type: ignore[misc]

"""A doc that comes back, when kb has changed in the meantime."""

import pytest
from histories import Add, AddAll, BringBack, ChangeModel, Delete, Op, Remove, Sync, Write
from histories_home import InProcess

WAYS: dict[str, tuple[tuple[Op, ...], Op]] = {
    "removed and added": ((Remove("a/one.md"),), Add("a/one.md")),
    "gone and there again": (
        (Delete("a/one.md"), Sync(accept_deletions=True)),
        BringBack("a/one.md"),
    ),
}


@pytest.mark.parametrize("way", list(WAYS))
def test_it_is_found_by_the_model_in_use(way: str) -> None:
    """A model that came while it was hidden has made no vectors of it."""
    goes, comes = WAYS[way]
    home = InProcess()
    try:
        for op in (Write("a/one.md", "Same"), AddAll("a"), *goes, ChangeModel("other"), comes):
            home.step(op)
        home.step(Sync(), check_every=1)
    finally:
        home.close()

"""Files that are replaced whole."""

from pathlib import Path

import pytest

from kb.store.content.durable import write_temporary


def test_a_link_under_the_temporary_name_is_not_followed(tmp_path: Path) -> None:
    """The bytes go nowhere, and the file that the link leads to stays as it is."""
    (tmp_path / "outside").write_text("mine")
    (tmp_path / "manifest.json.new").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match="symbolic links"):
        write_temporary(tmp_path / "manifest.json", b"theirs")
    assert (tmp_path / "outside").read_text() == "mine"

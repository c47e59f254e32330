"""What a walk leaves out is what git ignores, for random trees and random ignore files."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kb.intake.sync.walk import SkippedFile, WalkedFile, walk

NAMES = ("x.md", "y.md", "keep.md")
PATTERNS = (
    *("a", "b/", "/a", "*.md", "!keep.md", "build/", "src/*", "!src/a", "**/x.md", "a/**"),
    *("src/**/y.md", "/src/build", "[ab]", "?.md", "# a comment", "", "!x.md", "\\!a", "a/b/"),
)


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[str], dict[str, list[str]]]:
    """Paths of files, and the patterns of the ignore files by their folder."""
    folders = st.lists(st.sampled_from(("a", "b", "src", "build")), max_size=3)
    files = draw(
        st.lists(
            st.tuples(folders, st.sampled_from(("x.md", "y.md", "keep.md"))),
            min_size=1,
            max_size=12,
        )
    )
    paths = sorted({"/".join((*folder, name)) for folder, name in files})
    inside = sorted({os.path.dirname(path) for path in paths} | {""})
    patterns = st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=4)
    ignore = draw(st.dictionaries(st.sampled_from((*inside, "info")), patterns, max_size=3))
    return paths, ignore


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty repository, whose folder is emptied for each example."""
    root = tmp_path_factory.mktemp("tree")
    quiet = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    subprocess.run(["git", "init", "-q", root], check=True, env={**os.environ, **quiet})
    return root


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tree=trees())
@example(tree=(["src/a/a/x.md", "src/a/x.md"], {"": ["a", "!src/a"]}))
def test_a_walk_leaves_out_what_git_does(
    repository: Path, tree: tuple[list[str], dict[str, list[str]]]
) -> None:
    """Each file that git lists is found, and no other."""
    for entry in repository.iterdir():
        if entry.name != ".git":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    exclude = repository / ".git/info/exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_text("")
    paths, ignore = tree
    for path in paths:
        (repository / path).parent.mkdir(parents=True, exist_ok=True)
        (repository / path).write_text("x")
    for folder, patterns in ignore.items():
        file = exclude if folder == "info" else repository / folder / ".gitignore"
        file.write_text("\n".join(patterns) + "\n")
    listed = subprocess.run(
        ["git", "-C", repository, "ls-files", "-co", "--exclude-standard", "-z"],
        check=True,
        capture_output=True,
        env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": "/nonexistent"},
    ).stdout.decode()
    wanted = {path for path in listed.split("\0") if path.endswith(".md")}
    walked = list(walk(repository, ("md",), ignoring=True))
    found = {
        entry.path.relative_to(repository).as_posix()
        for entry in walked
        if isinstance(entry, WalkedFile)
    }
    assert found == wanted
    assert not any(entry.failed for entry in walked if isinstance(entry, SkippedFile))
    # From a folder inside, the rules above it count as well.
    for inner in sorted({path.split("/")[0] for path in paths if "/" in path}):
        below = {path for path in wanted if path.startswith(f"{inner}/")}
        seen = {
            entry.path.relative_to(repository).as_posix()
            for entry in walk(repository / inner, ("md",), ignoring=True)
            if isinstance(entry, WalkedFile)
        }
        # A folder that is ignored itself was named by a person.
        assert seen == below or not below

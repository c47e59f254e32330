"""What the workflow, the container and the forms promise."""

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from kb_cli.main import COMMANDS
from kb_cli.main import kb as group
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
FORMS = [
    path
    for path in sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
    if path.stem != "config"
]
NEWEST_MINOR = 13
"""The newest Python that the requirements have builds for, chroma-hnswlib aside."""


def read_yaml(name: str) -> Any:
    # YAML 1.1 reads the key `on` as true.
    return yaml.safe_load((ROOT / name).read_text("utf-8").replace("\non:", "\n'on':"))


CI = read_yaml(".github/workflows/ci.yml")
JOB = CI["jobs"]["test"]


def stages() -> list[list[tuple[str, str]]]:
    """The instructions of each stage of the Dockerfile, with their lines joined."""
    text = re.sub(r"\\\n\s*", "", re.sub(r"(?m)^#.*\n", "", DOCKERFILE))
    found: list[list[tuple[str, str]]] = []
    for line in filter(None, text.splitlines()):
        name, _, rest = line.partition(" ")
        if name == "FROM":
            found.append([])
        found[-1].append((name, rest))
    return found


def of_image(name: str) -> str:
    """The last instruction of a name in the stage that is shipped."""
    return [rest for key, rest in stages()[-1] if key == name][-1]


def test_ci_runs_on_every_python_that_kb_is_for() -> None:
    """From the oldest that pyproject.toml allows, and no older one."""
    allowed = SpecifierSet(PROJECT["requires-python"])
    expected = [f"3.{minor}" for minor in range(NEWEST_MINOR + 1) if f"3.{minor}" in allowed]
    assert JOB["strategy"]["matrix"]["python"] == expected
    install = (ROOT / "docs/how-to/install.md").read_text("utf-8")
    assert f"{', '.join(expected[:-1])} or {expected[-1]}" in install


def test_ci_runs_what_a_developer_runs() -> None:
    """One script, which is executable and has no other steps around it."""
    runs = [step["run"] for step in JOB["steps"] if "run" in step]
    assert runs == [".ci/run"]
    assert (ROOT / ".ci/run").stat().st_mode & 0o111


def test_ci_may_only_read() -> None:
    """Its token writes nothing, and each action is pinned to a major version."""
    assert CI["permissions"] == {"contents": "read"}
    assert "permissions" not in JOB
    assert not {"pull_request_target", "workflow_run"} & set(CI["on"])
    used = [step["uses"] for step in JOB["steps"] if "uses" in step]
    assert used
    assert [name for name in used if not re.fullmatch(r"actions/[\w-]+@v\d+", name)] == []


def test_dependabot_looks_after_all_that_is_pinned() -> None:
    """Packages, actions and the image that the container starts from."""
    updates = read_yaml(".github/dependabot.yml")["updates"]
    assert {update["package-ecosystem"] for update in updates} == {
        "pip",
        "github-actions",
        "docker",
    }


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_is_one(form: Path) -> None:
    """It has a name and a description, and asks at least one thing; its ids differ."""
    said = read_yaml(str(form.relative_to(ROOT)))
    asked = [part for part in said["body"] if part["type"] != "markdown"]
    assert said["name"]
    assert said["description"]
    assert any(part.get("validations", {}).get("required") for part in asked)
    assert all(part["attributes"]["label"] for part in asked)
    assert len({part["id"] for part in asked}) == len(asked)


def test_the_container_does_not_run_as_root() -> None:
    """The user that it names is made before, without a shell, and owns the volume."""
    user = of_image("USER")
    assert user == "kb"
    made = " ".join(rest for key, rest in stages()[-1] if key == "RUN")
    assert re.search(rf"useradd .*--shell /usr/sbin/nologin {user}\b", made)
    assert f"install -d -o {user}" in made
    order = [key for key, _ in stages()[-1]]
    assert order.index("USER") > max(n for n, key in enumerate(order) if key in ("RUN", "COPY"))


def test_the_container_keeps_all_data_in_its_volume() -> None:
    """Home, settings and caches, by the variables that kb goes by."""
    volume = of_image("VOLUME")
    variables = dict(re.findall(r"(\w+)=(\S+)", of_image("ENV")))
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        assert Path(variables[name]).is_relative_to(volume)


def test_the_container_starts_a_command_that_is_there() -> None:
    """Its options are parsed as the command line parses them, and the port is the open one."""
    program = json.loads(of_image("ENTRYPOINT"))
    argv = json.loads(of_image("CMD"))
    assert program == ["kb"]
    with group.make_context("kb", list(argv)) as context:
        command = group.get_command(context, argv[0])
        assert command is not None
        parsed = command.make_context(argv[0], argv[1:], parent=context).params
    assert (parsed["host"], str(parsed["port"])) == ("0.0.0.0", of_image("EXPOSE"))
    assert not parsed["no_token"]


def test_the_container_is_built_from_an_allowed_python_and_the_serve_extra() -> None:
    """Both stages start from the same image, and what is installed is the source itself."""
    images = {rest.partition(" ")[0] for stage in stages() for key, rest in stage if key == "FROM"}
    (image,) = images
    version = re.fullmatch(r"python:(3\.\d+)-slim", image)
    assert version is not None
    assert version[1] in SpecifierSet(PROJECT["requires-python"])
    build = " ".join(rest for key, rest in stages()[0] if key == "RUN")
    assert shlex.split(build.rpartition("pip install")[2])[-1] == ".[${EXTRAS}]"
    assert "EXTRAS=serve" in [rest for key, rest in stages()[0] if key == "ARG"]


def test_what_the_build_needs_is_sent_to_it() -> None:
    """.dockerignore lets in each folder and file that the wheel is made of, and no others."""
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    let_in = {line[1:] for line in lines if line.startswith("!")}
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]
    wheel = tool["targets"]["wheel"]
    sources = {name.partition("/")[0] for name in (*wheel["packages"], *wheel["force-include"])}
    files = {"pyproject.toml", "constraints.txt", PROJECT["readme"], *PROJECT["license-files"]}
    assert "*" in lines
    assert let_in == sources | files


def test_commands_that_the_guides_show_are_there() -> None:
    """In the pages on installing and removing, and in the container's own comments."""
    pages = [ROOT / f"docs/how-to/{name}.md" for name in ("install", "remove")]
    text = "\n".join(page.read_text("utf-8") for page in pages) + DOCKERFILE
    shown = re.findall(r"(?:`kb |kb-search )([a-z][\w-]*)(?: ([a-z]+)\b)?", text)
    assert len(shown) > 10
    context = click.Context(group)
    for name, inner in shown:
        assert name in COMMANDS
        command = group.get_command(context, name)
        if isinstance(command, click.Group) and inner:
            assert inner in command.commands


MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


def recipes() -> dict[str, str]:
    """The targets that are commands, with what they run."""
    (phony,) = re.findall(r"(?m)^\.PHONY: (.*)$", MAKEFILE)
    text = dict.fromkeys(phony.split(), "")
    for name, recipe in re.findall(r"(?m)^([\w-]+):[^\n=]*\n((?:\t.*\n)*)", MAKEFILE):
        text[name] = recipe
    return text


def test_help_has_every_target() -> None:
    """Each target that is a command has a line, and no line is of another."""
    said = set(re.findall(r'(?m)^\t@echo "make ([\w-]+) ', MAKEFILE))
    assert said == set(recipes()) - {"help"}


def test_ci_makes_what_there_is() -> None:
    """.ci/run calls targets of the Makefile, the tests among them."""
    called = set(re.findall(r"(?m)^make ([\w-]+)$", (ROOT / ".ci/run").read_text("utf-8")))
    assert {"check", "demo", "test"} <= called <= set(recipes())


def test_every_long_campaign_has_its_target() -> None:
    """Whatever `make test` leaves out is run by a target, which CONTRIBUTING.md explains."""
    run = {
        name: re.search(r"-m slow (\S+)", recipe)
        for name, recipe in recipes().items()
        if "-m slow" in recipe
    }
    places = [ROOT / match[1] for match in run.values() if match]
    assert len(places) == len(run) > 5
    slow = [
        path
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if "pytest.mark.slow" in path.read_text("utf-8") and path != Path(__file__)
    ]
    assert len(slow) > 5
    left = [path for path in slow if not any(path.is_relative_to(place) for place in places)]
    assert left == []
    guide = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    explained = set(re.findall(r"(?m)^\| `make ([\w-]+)` \|", guide))
    # What `make check` has of them is no campaign.
    assert explained == {*run, "fuzz-http", "test-properties"} - {"check"}
    campaigns = re.findall(r"(?m)^campaigns: (.*)$", MAKEFILE)[0].split()
    # Those of tests/crash have the kills on a database among them.
    assert {*campaigns, "test-postgres"} == explained

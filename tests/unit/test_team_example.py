"""The files in examples/team/ start commands that are there, and fit each other."""

import importlib
import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from kb_cli.main import COMMANDS
from kb_cli.main import kb as group

from kb.model.config import load
from kb.store.content.database import database_address

FOLDER = Path(__file__).resolve().parents[2] / "examples/team"
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OWN = [name for name, service in SERVICES.items() if service.get("image") == "kb-search-team"]
ENV = dict(re.findall(r"(?m)^(\w+)=(.*)$", (FOLDER / "example.env").read_text()))


def filled(word: str) -> str:
    """A word of the file with the variables of example.env."""
    return re.sub(r"\$\{(\w+)[^}]*\}", lambda found: ENV[found[1]], word)


def test_it_is_the_team_that_is_described() -> None:
    """A database, two servers, three workers and a proxy."""
    assert sorted(SERVICES) == ["database", "proxy", "server-1", "server-2", "worker"]
    assert SERVICES["worker"]["deploy"]["replicas"] == 3
    assert sorted(OWN) == ["server-1", "server-2", "worker"]


@pytest.mark.parametrize("name", OWN)
def test_what_is_started_can_be_called_so(name: str) -> None:
    """Command, options and settings are parsed as the command line parses them."""
    argv = [filled(word) for word in SERVICES[name]["command"]]
    with group.make_context("kb", argv, obj={}) as context:
        first, *rest = [*context._protected_args, *context.args]
        assert first in COMMANDS
        command: click.Command = importlib.import_module(f"kb_cli.{first}").command
        command.make_context(first, rest).close()
        settings = load([], context.params["cfg"])
    assert settings.serve.hosts == (() if name == "worker" else (ENV["KB_HOST"],))


@pytest.mark.parametrize("name", OWN)
def test_each_is_given_the_database_and_no_password_in_an_address(name: str) -> None:
    """The password is in the environment alone, from a file that is not kept."""
    environment = SERVICES[name]["environment"]
    address = database_address(environment["KB_HOME"])
    assert (address.schema, ":" in environment["KB_HOME"].partition("//")[2]) == ("team", False)
    assert environment["PGPASSWORD"].startswith("${KB_DATABASE_PASSWORD:?")
    assert SERVICES["database"]["environment"]["POSTGRES_USER"] == "kb"
    assert ENV["KB_DATABASE_PASSWORD"] == ""
    assert SERVICES[name]["build"]["args"] == {"EXTRAS": "serve,postgres"}
    assert environment["KB_HOME"] in (FOLDER / "compose.yaml").read_text()


def test_the_proxy_asks_both_servers_where_they_listen() -> None:
    """Its upstreams are the services, at the port of their command, and each has a volume."""
    upstreams = re.findall(r"([\w-]+):(\d+)", (FOLDER / "Caddyfile").read_text())
    servers = {name: service for name, service in SERVICES.items() if name.startswith("server")}
    assert sorted(name for name, _ in upstreams) == sorted(servers)
    for name, port in upstreams:
        command = servers[name]["command"]
        assert command[command.index("--port") + 1] == port
        assert servers[name]["volumes"] == [f"{name}:/data"]
        assert name in COMPOSE["volumes"]
    assert sorted(SERVICES["proxy"]["depends_on"]) == sorted(servers)


@pytest.mark.parametrize("name", OWN)
def test_each_ends_before_it_is_killed(name: str) -> None:
    """It is waited for longer than it may take."""
    assert int(SERVICES[name]["stop_grace_period"].removesuffix("s")) > 15

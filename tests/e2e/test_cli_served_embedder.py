"""A model behind a server: taken up by name, down, back at another place, and changed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Home, Ran, surroundings
from embed_server import EmbeddingServer, embed_serving
from llm_server import KEY

NOTES = ("tea", "coffee", "milk")


class ServedHome(Home):
    """A home whose settings name a server."""

    base_url = ""

    def run(self, *args: object, **options: Any) -> Ran:
        env = surroundings(
            OPENAI_API_KEY=KEY, KB_CFG=f"embed.base_url={self.base_url}\nembed.tries=1"
        )
        ran = super().run(*args, env=env, **options)
        assert KEY not in ran.out + ran.err
        return ran

    def model(self) -> str:
        return str(self.run("embedder", "--json").json["active"])


@pytest.fixture
def home(tmp_path: Path) -> ServedHome:
    for name in NOTES:
        (tmp_path / f"{name}.md").write_text(f"# {name}\n\nWhat is known of {name}.")
    home = ServedHome(tmp_path / "home")
    assert home.run("add", *(tmp_path / f"{name}.md" for name in NOTES)).code == 0
    return home


@pytest.fixture(params=["openai", "ollama"])
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddingServer]:
    with embed_serving(request.param) as running:
        yield running


def dense(home: Home, *options: str) -> tuple[list[bool], list[str]]:
    """Whether each hit was found by meaning, and the warnings."""
    ran = home.run("search", "known tea", "--json", *options)
    assert ran.code == 0, ran.err
    answer = ran.json
    return [hit["legs"]["dense"] is not None for hit in answer["hits"]], answer["warnings"]


def test_it_is_taken_up_by_name_and_falls_back_to_words(
    home: ServedHome, server: EmbeddingServer, tmp_path: Path
) -> None:
    """Down, a search goes by words and a job waits; back at another place, both go on."""
    home.base_url = server.base_url
    name = f"{server.api}:tiny:v1"
    changed = home.run("embedder", "set", name)
    assert changed.code == 0, changed.err
    assert home.model() == f"{name}:48"
    assert dense(home) == ([True] * 3, [])
    home.base_url = "http://127.0.0.1:9/v1"
    assert home.model() == f"{name}:48"
    found, warnings = dense(home)
    assert found == [False] * 3
    assert "searched by words alone" in warnings[0]
    assert "cannot be reached; check that it runs" in warnings[0]
    assert home.run("search", "tea", "--mode", "dense").code == 1
    assert "cannot be reached" in home.run("doctor").out
    # The doc is found by its words; its vector waits for the server.
    (tmp_path / "new.md").write_text("# Cocoa\n\nWhat is known of cocoa.")
    assert home.run("add", tmp_path / "new.md", "--no-wait").code == 0
    before = len(server.requests)
    home.base_url = server.base_url
    assert home.run("worker", "--drain").code == 0
    assert len(server.requests) > before
    assert dense(home, "--mode", "dense") == ([True] * 4, [])
    assert home.run("check").code == 0


def test_another_model_under_the_name_is_not_mixed_in(
    home: ServedHome, server: EmbeddingServer
) -> None:
    """Its vectors have another length: an error that says so, and words meanwhile."""
    home.base_url = server.base_url
    assert home.run("embedder", "set", f"{server.api}:tiny").code == 0
    with embed_serving(server.api, dim=32) as other:
        home.base_url = other.base_url
        _, (warning,) = dense(home)
        assert "vectors of length 32, and those of tiny have 48 here" in warning
        assert home.run("embedder", "set", f"{server.api}:tiny").code == 0
        assert home.model() == f"{server.api}:tiny:32"
        assert dense(home) == ([True] * 3, [])


def test_no_server_is_asked_that_the_settings_do_not_name(home: ServedHome) -> None:
    """Whatever a home says: one clear error where it is chosen, and a warning where it was."""
    ran = home.run("embedder", "set", "openai:tiny")
    assert ran.code == 1
    assert "set embed.base_url in your own settings" in ran.err
    with embed_serving("openai") as server:
        home.base_url = server.base_url
        assert home.run("embedder", "set", "openai:tiny").code == 0
    home.base_url = ""
    found, warnings = dense(home)
    assert found == [False] * 3
    assert "no server is set up for openai:tiny" in warnings[0]


def test_a_new_home_begins_with_it(tmp_path: Path, server: EmbeddingServer) -> None:
    """Where the settings say so; a server that is down costs a try, and no doc."""
    (tmp_path / "tea.md").write_text("# Tea\n\nWhat is known of tea.")
    home = ServedHome(tmp_path / "home")
    settings = ("--cfg", f"embed.kind={server.api}", "--cfg", "embed.model=tiny")
    home.base_url = "http://127.0.0.1:9"
    down = home.run(*settings, "add", tmp_path / "tea.md", "--no-wait")
    assert down.code == 0, down.err
    home.base_url = server.base_url
    assert home.run(*settings, "worker", "--drain").code == 0
    assert home.run(*settings, "stats", "--json").json["model"] == f"{server.api}:tiny:48"
    found = home.run(*settings, "search", "tea", "--json").json
    assert found["warnings"] == []
    assert found["hits"][0]["legs"]["dense"] == 1

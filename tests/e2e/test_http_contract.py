"""`/openapi.json` against the server that gives it: each operation, asked with what it allows."""

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

import hypothesis
import hypothesis.strategies as st
import pytest
import schemathesis
from commands import Home
from http_server import HOST, Running, serving, until
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from kb.serve.http_reply import EVENTS
from kb.serve.http_routes import Route
from kb.serve.http_server import all_routes

# `make fuzz-http` asks for more.
EXAMPLES: Final = int(os.environ.get("KB_FUZZ_EXAMPLES", "5"))
CHECKS: Final = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]
# What has no end cannot be read to the end, and /mcp has a protocol of its own; both have tests of
# their own.
ROUTES: Final = [
    route for route in all_routes() if route.media != EVENTS and route.takes != "message"
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Docs, topics, a pack and a note."""
    folder = tmp_path_factory.mktemp("contract")
    for name, text in {
        "docs/boat.md": "# Boat\n\nThe keel is oak. See https://example.org #sails",
        "docs/soup.md": "# Soup\n\nSoup needs salt, says @ada.",
        "handbook/leave.md": "---\ntitle: Leave\n---\nAsk [first](first.md).",
        "handbook/first.md": "# First\n\nWhat comes first.",
        "topics/bowline.md": "# Bowline\n\nA bowline holds.",
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    made = Home(folder / "home")
    for args in (
        ("add", folder / "docs"),
        ("pack", "build", folder / "handbook"),
        ("pack", "add", folder / "handbook"),
        ("note", "add", "The spare key is with Ada."),
    ):
        assert made.run(*args).code == 0
    topic = f"[kb.topic.knots]\nsubjects = '{folder / 'topics'}'\n"
    (made.root / "config.toml").write_text(topic)
    return made


@pytest.fixture(scope="module")
def server(home: Home) -> Iterator[Running]:
    with serving(home) as running:
        until(lambda: all(doc["indexed"] for doc in running.get("/v1/docs").json["docs"]))
        yield running


@pytest.fixture(scope="module")
def known(home: Home, server: Running) -> Mapping[str, list[str]]:
    """What is there under the names of fields, so that answers come about and not only refusals."""
    docs = sorted(home.ids().values())
    passages = [hit["chunk_id"] for hit in server.get("/v1/search?q=oak").json["hits"]]
    jobs = [job["job_id"] for job in server.get("/v1/jobs").json["jobs"]]
    packs = [pack["pack_id"] for pack in server.get("/v1/packs").json["packs"]]
    return {
        "id": [*docs, *passages, *jobs],
        "doc_ids": docs,
        "pack": [*packs, "handbook"],
        "topic": ["knots"],
        "doc": ["leave", "first"],
    }


def fitted(said: Any, known: Mapping[str, list[str]], draw: st.DrawFn) -> Any:
    """The same with ids of what is there, now and then, in the place of made-up ones."""
    if not isinstance(said, dict):
        return said
    for name in sorted(set(said) & set(known)):
        if draw(st.integers(0, 3)):
            value = draw(st.sampled_from(known[name]))
            said[name] = [value] if isinstance(said[name], list) else value
    return said


@pytest.fixture(scope="module")
def described(server: Running) -> Any:
    """What the server says of itself."""
    return schemathesis.openapi.from_dict(server.get("/openapi.json").json)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_an_operation_does_what_it_says(
    server: Running, described: Any, known: Mapping[str, list[str]], route: Route
) -> None:
    """No defect, and no status, header, type or body that the description does not have."""
    operation = described[route.path][route.method]

    @hypothesis.given(operation.as_strategy(), st.data())
    @hypothesis.settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        # A case found is told as it is: making it smaller takes minutes.
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    def holds(case: schemathesis.Case, data: st.DataObject) -> None:
        for part in (case.path_parameters, case.query, case.body):
            fitted(part, known, data.draw)
        case.call_and_validate(base_url=f"http://{HOST}:{server.port}", checks=CHECKS, timeout=30)

    holds()

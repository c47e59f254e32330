"""What the commands of `kb registry` print as JSON."""

from typing import Any

from kb.knowledge.registry.publish import Published, PublishProblem
from kb.model.registry import RegistryRecord
from kb.operations import registries


def registry_shapes() -> list[tuple[str, Any]]:
    """Under each command's name, the records of its document: where, and of which class."""
    return [
        ("publish", Published),
        ("publish.problems", PublishProblem),
        ("add", RegistryRecord),
        ("ls", registries.RegistryList),
        ("ls.registries", RegistryRecord),
        ("rm", registries.RemoveRegistryResult),
    ]

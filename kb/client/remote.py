"""An operation, asked of a server."""

from typing import Any, Final

from msgspec import Struct

from kb.client.http_client import ServerClient
from kb.operations.operation import Operation

# A language model may take its time, and others may be before us.
_ANSWER_S: Final = 600.0


def run_remote(client: ServerClient, operation: Operation, request: Struct) -> Any:
    """What a server answers, as its token's user reads it.

    Raises ServerError where it has no answer, and what was asked wrongly or is not there as it
    would be raised at home.
    """
    wait_s = _ANSWER_S if operation.asks_model else 0.0
    answer = client.post_raw(operation.path, request, wait_s=wait_s)
    try:
        return operation.decoded(answer)
    except ValueError:
        raise client.unreadable() from None

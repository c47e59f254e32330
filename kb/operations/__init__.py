"""What may an agent ask? JSON-shaped calls whose scope is injected by the caller."""

from kb.operations.catalogue import (
    HELP,
    LEARN,
    TOOLS,
    Tool,
    answer,
    answer_by,
    call,
    listing,
    tools_of,
)
from kb.operations.kit import ToolKit
from kb.operations.wrong import ErrorCode, Failed, ToolError

__all__ = [
    "HELP",
    "LEARN",
    "TOOLS",
    "ErrorCode",
    "Failed",
    "Tool",
    "ToolError",
    "ToolKit",
    "answer",
    "answer_by",
    "call",
    "listing",
    "tools_of",
]

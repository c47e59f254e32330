"""What may an agent ask? JSON-shaped calls whose scope is injected by the caller."""

from kb.tools.catalogue import TOOLS, Tool, answer, call, listing
from kb.tools.kit import ToolKit
from kb.tools.wrong import ErrorCode, Failed, ToolError

__all__ = [
    "TOOLS",
    "ErrorCode",
    "Failed",
    "Tool",
    "ToolError",
    "ToolKit",
    "answer",
    "call",
    "listing",
]

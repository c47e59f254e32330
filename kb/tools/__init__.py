"""What may an agent ask? JSON-shaped calls whose scope is injected by the caller."""

from kb.tools.catalogue import LEARN, TOOLS, Tool, answer, call, listing, tools_of
from kb.tools.kit import ToolKit
from kb.tools.wrong import ErrorCode, Failed, ToolError

__all__ = [
    "LEARN",
    "TOOLS",
    "ErrorCode",
    "Failed",
    "Tool",
    "ToolError",
    "ToolKit",
    "answer",
    "call",
    "listing",
    "tools_of",
]

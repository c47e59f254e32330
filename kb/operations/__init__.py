"""What may be asked of an open home? One operation a module; agents call some of them as tools."""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
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
else:
    # Loaded when a name of theirs is asked for: the tools need the search and its indexes, which
    # a command that calls no tool does not wait for.
    _MODULES: Final = {
        "ToolKit": "kit",
        "ErrorCode": "wrong",
        "Failed": "wrong",
        "ToolError": "wrong",
    }

    def __getattr__(name: str) -> Any:
        import importlib

        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = importlib.import_module(f"{__name__}.{_MODULES.get(name, 'catalogue')}")
        return getattr(module, name)


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

"""File tools for AI agents, fenced to a workspace.

    >>> from pinfold import Session
    >>> session = Session("/path/to/project")
    >>> session.call("Read", file_path="/path/to/project/README.md").output
"""

from ._settings import Dialect, Permissions, Settings
from .context import CancelToken, CanUseTool, Decision, ExecutionContext, Question
from .registry import ToolRegistry, register_file_tools
from .results import Conflict, Image, PatchResult, PinfoldError, Rewound, RewoundFile, ToolResult
from .session import SchemaFormat, Session, Sessions, tool_schemas
from .tools import (
    BaseTool,
    DeleteTool,
    EditTool,
    FileTool,
    GlobTool,
    GrepTool,
    LSTool,
    MoveTool,
    MultiEditTool,
    NotebookEditTool,
    ReadTool,
    ToolCategory,
    ToolParameter,
    WriteTool,
)

__all__ = [
    "BaseTool",
    "CanUseTool",
    "CancelToken",
    "Conflict",
    "Decision",
    "DeleteTool",
    "Dialect",
    "EditTool",
    "ExecutionContext",
    "FileTool",
    "GlobTool",
    "GrepTool",
    "Image",
    "LSTool",
    "MoveTool",
    "MultiEditTool",
    "NotebookEditTool",
    "PatchResult",
    "Permissions",
    "PinfoldError",
    "Question",
    "ReadTool",
    "Rewound",
    "RewoundFile",
    "SchemaFormat",
    "Session",
    "Sessions",
    "Settings",
    "ToolCategory",
    "ToolParameter",
    "ToolRegistry",
    "ToolResult",
    "WriteTool",
    "register_file_tools",
    "tool_schemas",
]

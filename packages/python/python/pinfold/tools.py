"""Tools as objects with a name, a description, parameters and `execute`."""

from __future__ import annotations

import enum
import json
from abc import ABC, abstractmethod
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, cast

from . import _native
from .context import ExecutionContext
from .results import ToolResult
from .session import Session, Sessions, tool_schemas


class ToolCategory(str, enum.Enum):
    """The category of a tool."""

    FILE = "file"
    OTHER = "other"


@dataclass(frozen=True)
class ToolParameter:
    """A parameter of a tool."""

    name: str
    type: str
    description: str = ""
    required: bool = False
    default: Any = None
    enum: list[Any] | None = None
    minimum: int | None = None
    maximum: int | None = None
    # The schema of the elements of an array.
    items: dict[str, Any] | None = None

    def to_schema(self) -> dict[str, Any]:
        """The parameter as a JSON schema."""
        given = {
            "description": self.description or None,
            "default": self.default,
            "enum": self.enum,
            "minimum": self.minimum,
            "maximum": self.maximum,
            "items": self.items,
        }
        keywords = {key: value for key, value in given.items() if value is not None}
        return {"type": self.type, **keywords}


class BaseTool(ABC):
    """A tool. A subclass defines the abstract properties and `_execute`."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that the model uses."""

    @property
    @abstractmethod
    def description(self) -> str:
        """The description for the model."""

    @property
    def category(self) -> ToolCategory:
        """The category."""
        return ToolCategory.OTHER

    @property
    @abstractmethod
    def parameters(self) -> list[ToolParameter]:
        """The parameters."""

    @property
    def input_schema(self) -> dict[str, Any]:
        """The parameters as a JSON schema."""
        return {
            "type": "object",
            "additionalProperties": False,
            "properties": {parameter.name: parameter.to_schema() for parameter in self.parameters},
            "required": [parameter.name for parameter in self.parameters if parameter.required],
        }

    def to_openai_schema(self) -> dict[str, Any]:
        """The tool as a function of OpenAI's chat completions."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self.input_schema,
        }
        return {"type": "function", "function": function}

    def to_anthropic_schema(self) -> dict[str, Any]:
        """The tool as a tool of Anthropic's messages."""
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema,
        }

    def to_gemini_schema(self) -> dict[str, Any]:
        """The tool as a function declaration of Gemini, which refuses `additionalProperties`."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters": _without(self.input_schema, "additionalProperties"),
        }

    def to_mcp_schema(self) -> dict[str, Any]:
        """The tool as an entry of `tools/list` of the Model Context Protocol."""
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": self.input_schema,
        }

    async def execute(self, context: ExecutionContext, /, **kwargs: Any) -> ToolResult:
        """Calls the tool. Failures are results, not exceptions."""
        try:
            return await self._execute(context, **kwargs)
        except Exception as error:
            return ToolResult.fail(str(error) or type(error).__name__)

    @abstractmethod
    async def _execute(self, context: ExecutionContext, **kwargs: Any) -> ToolResult:
        """Performs the call."""


class FileTool(BaseTool):
    """One of Pinfold's tools. Without a session it uses one for the context's working directory, which all
    such tools share."""

    _name: ClassVar[str]

    def __init__(self, session: Session | Sessions | None = None) -> None:
        self._session = session

    @property
    def name(self) -> str:
        return self._name

    @property
    def description(self) -> str:
        return str(_described()[self._name]["description"])

    @property
    def category(self) -> ToolCategory:
        return ToolCategory.FILE

    @property
    def parameters(self) -> list[ToolParameter]:
        schema = self.input_schema
        required = schema.get("required", [])
        return [
            ToolParameter(
                name=name,
                type=keywords["type"],
                description=keywords.get("description", ""),
                required=name in required,
                default=keywords.get("default"),
                enum=keywords.get("enum"),
                minimum=keywords.get("minimum"),
                maximum=keywords.get("maximum"),
                items=keywords.get("items"),
            )
            for name, keywords in schema["properties"].items()
        ]

    @property
    def input_schema(self) -> dict[str, Any]:
        # A copy, which the caller may modify.
        return deepcopy(cast("dict[str, Any]", _described()[self._name]["parameters"]))

    def to_mcp_schema(self) -> dict[str, Any]:
        return deepcopy(_mcp_schemas()[self._name])

    def format_compact_params(self, context: ExecutionContext, /, **kwargs: Any) -> str:
        """The arguments of a call on one line, for the user."""
        return self._for(context).format_compact_params(self._name, kwargs)

    async def execute(self, context: ExecutionContext, /, **kwargs: Any) -> ToolResult:
        # The model chooses the names of arguments, so `session.execute` takes them as one mapping.
        try:
            session = self._for(context)
        except (TypeError, ValueError) as error:
            return ToolResult.fail(str(error), code="invalid_argument")
        return await session.execute(self._name, kwargs, context)

    async def _execute(self, context: ExecutionContext, **kwargs: Any) -> ToolResult:
        return await self.execute(context, **kwargs)

    def _for(self, context: ExecutionContext) -> Session:
        if isinstance(self._session, Session):
            return self._session
        return (self._session or _SHARED).get(context)


class ReadTool(FileTool):
    """Reads a file."""

    _name = "Read"


class WriteTool(FileTool):
    """Creates a file, or replaces its content."""

    _name = "Write"


class EditTool(FileTool):
    """Replaces text in a file."""

    _name = "Edit"


class MultiEditTool(FileTool):
    """Makes several edits of one file, all or none."""

    _name = "MultiEdit"


class NotebookEditTool(FileTool):
    """Replaces, inserts or deletes a cell of a notebook."""

    _name = "NotebookEdit"


class DeleteTool(FileTool):
    """Deletes a file."""

    _name = "Delete"


class MoveTool(FileTool):
    """Moves or renames a file or directory."""

    _name = "Move"


class LSTool(FileTool):
    """Lists a directory."""

    _name = "LS"


class GlobTool(FileTool):
    """Finds files by their names."""

    _name = "Glob"


class GrepTool(FileTool):
    """Searches in files."""

    _name = "Grep"


# The sessions of tools that were created without one.
_SHARED = Sessions()


def file_tools(session: Session | Sessions | None = None) -> list[FileTool]:
    """All of Pinfold's tools, in the order in which a model is shown them."""
    classes = [
        ReadTool, WriteTool, EditTool, MultiEditTool, NotebookEditTool,
        DeleteTool, MoveTool, LSTool, GlobTool, GrepTool,
    ]  # fmt: skip
    return [tool(session) for tool in classes]


@cache
def _described() -> dict[str, dict[str, Any]]:
    tools = json.loads(_native.describe(["classic"]))
    return {tool["name"]: tool for tool in tools}


@cache
def _mcp_schemas() -> dict[str, dict[str, Any]]:
    return {tool["name"]: tool for tool in tool_schemas("mcp")}


def _without(value: Any, key: str) -> Any:
    """A copy of a JSON value without a key, at all levels."""
    if isinstance(value, dict):
        return {name: _without(inner, key) for name, inner in value.items() if name != key}
    return [_without(item, key) for item in value] if isinstance(value, list) else value

"""Tools as objects: a name, a description, parameters, and `execute`."""

from __future__ import annotations

import enum
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from . import _native
from .context import ExecutionContext
from .results import ToolResult
from .session import Session, Sessions


class ToolCategory(str, enum.Enum):
    """What a tool is about."""

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
    # What the elements of an array look like.
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
        said = {key: value for key, value in given.items() if value is not None}
        return {"type": self.type, **said}


class BaseTool(ABC):
    """A tool, yours or Pinfold's. One of yours has these properties and `_execute`."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What the model calls it."""

    @property
    @abstractmethod
    def description(self) -> str:
        """What it does, for the model."""

    @property
    def category(self) -> ToolCategory:
        """What it is about."""
        return ToolCategory.OTHER

    @property
    @abstractmethod
    def parameters(self) -> list[ToolParameter]:
        """What it takes."""

    @property
    def input_schema(self) -> dict[str, Any]:
        """What it takes, as a JSON schema."""
        return {
            "type": "object",
            "additionalProperties": False,
            "properties": {parameter.name: parameter.to_schema() for parameter in self.parameters},
            "required": [parameter.name for parameter in self.parameters if parameter.required],
        }

    def to_openai_schema(self) -> dict[str, Any]:
        """The tool as OpenAI's functions are described."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self.input_schema,
        }
        return {"type": "function", "function": function}

    def to_anthropic_schema(self) -> dict[str, Any]:
        """The tool as Anthropic's tools are described."""
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema,
        }

    async def execute(self, context: ExecutionContext, /, **kwargs: Any) -> ToolResult:
        """Makes a call. Failures are results, not exceptions."""
        try:
            return await self._execute(context, **kwargs)
        except Exception as error:
            return ToolResult.fail(str(error) or type(error).__name__)

    @abstractmethod
    async def _execute(self, context: ExecutionContext, **kwargs: Any) -> ToolResult:
        """Does the work."""


class FileTool(BaseTool):
    """One of Pinfold's tools. Given a session it works on that; otherwise on one for the context's working
    directory, which all such tools share."""

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
                type=said["type"],
                description=said.get("description", ""),
                required=name in required,
                default=said.get("default"),
                enum=said.get("enum"),
                minimum=said.get("minimum"),
                maximum=said.get("maximum"),
                items=said.get("items"),
            )
            for name, said in schema["properties"].items()
        ]

    @property
    def input_schema(self) -> dict[str, Any]:
        # A copy: what a caller does to it is theirs.
        schema: dict[str, Any] = json.loads(json.dumps(_described()[self._name]["parameters"]))
        return schema

    def format_compact_params(self, context: ExecutionContext, /, **kwargs: Any) -> str:
        """The arguments of a call on one line, for a person."""
        return self._for(context).format_compact_params(self._name, kwargs)

    async def execute(self, context: ExecutionContext, /, **kwargs: Any) -> ToolResult:
        # A model may call an argument whatever it likes, so nothing may be passed on by name.
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


class DeleteTool(FileTool):
    """Deletes a file."""

    _name = "Delete"


class LSTool(FileTool):
    """Lists a directory."""

    _name = "LS"


class GlobTool(FileTool):
    """Finds files by their names."""

    _name = "Glob"


class GrepTool(FileTool):
    """Searches in files."""

    _name = "Grep"


# The sessions of tools that were given none.
_SHARED = Sessions()


def file_tools(session: Session | Sessions | None = None) -> list[FileTool]:
    """All of Pinfold's tools, in the order in which a model is shown them."""
    classes = [
        ReadTool, WriteTool, EditTool, MultiEditTool, DeleteTool, LSTool, GlobTool, GrepTool,
    ]  # fmt: skip
    return [tool(session) for tool in classes]


@cache
def _described() -> dict[str, dict[str, Any]]:
    tools = json.loads(_native.describe(["classic"]))
    return {tool["name"]: tool for tool in tools}

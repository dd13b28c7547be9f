"""A registry of tools by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .context import CanUseTool, ExecutionContext
from .results import ToolResult
from .session import SchemaFormat, Session, Sessions
from .tools import BaseTool, file_tools

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._settings import Settings


class ToolRegistry:
    """A registry of tools by name: Pinfold's and the program's own."""

    def __init__(self) -> None:
        self._tools: dict[str, BaseTool] = {}

    def register(self, tool: BaseTool) -> None:
        """Adds a tool. Raises `ValueError` if the name is taken."""
        if tool.name in self._tools:
            raise ValueError(f"there is a tool `{tool.name}` already")
        self._tools[tool.name] = tool

    def get(self, name: str) -> BaseTool | None:
        """The tool with this name, or `None`."""
        return self._tools.get(name)

    def names(self) -> list[str]:
        """The names of all tools, in the order in which they were added."""
        return list(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[BaseTool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def get_all_schemas(self, format: SchemaFormat = "openai") -> list[dict[str, Any]]:
        """All tools in the format of a model provider."""
        if format == "openai":
            return [tool.to_openai_schema() for tool in self]
        if format == "anthropic":
            return [tool.to_anthropic_schema() for tool in self]
        if format == "gemini":
            return [{"functionDeclarations": [tool.to_gemini_schema() for tool in self]}]
        if format == "mcp":
            return [tool.to_mcp_schema() for tool in self]
        raise ValueError(
            f"there is no format `{format}`; the formats are openai, anthropic, gemini, mcp"
        )

    async def execute(self, name: str, context: ExecutionContext, /, **kwargs: Any) -> ToolResult:
        """Calls a tool by its name."""
        tool = self.get(name)
        if tool is None:
            known = ", ".join(self._tools)
            return ToolResult.fail(
                f"there is no tool `{name}`; the tools are {known}", code="unknown_tool"
            )
        return await tool.execute(context, **kwargs)


def register_file_tools(
    registry: ToolRegistry,
    session: Session | None = None,
    *,
    can_use_tool: CanUseTool | None = None,
    **settings: Unpack[Settings],
) -> None:
    """Adds Pinfold's tools. They use `session`, or else one session for each working directory, with these
    settings."""
    if session is not None and (settings or can_use_tool is not None):
        raise TypeError("give either a session or settings")
    tools = file_tools(session or Sessions(can_use_tool=can_use_tool, **settings))
    for tool in tools:
        if tool.name in registry:
            raise ValueError(f"there is a tool `{tool.name}` already")
    for tool in tools:
        registry.register(tool)

"""Tools by their names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from .context import CanUseTool, ExecutionContext
from .results import ToolResult
from .session import Session, Sessions
from .tools import BaseTool, file_tools

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._settings import Settings


class ToolRegistry:
    """Tools by their names, Pinfold's and yours."""

    def __init__(self) -> None:
        self._tools: dict[str, BaseTool] = {}

    def register(self, tool: BaseTool) -> None:
        """Adds a tool. A name that is taken is a `ValueError`."""
        if tool.name in self._tools:
            raise ValueError(f"there is a tool `{tool.name}` already")
        self._tools[tool.name] = tool

    def get(self, name: str) -> BaseTool | None:
        """The tool with a name."""
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

    def get_all_schemas(
        self, format: Literal["openai", "anthropic"] = "openai"
    ) -> list[dict[str, Any]]:
        """All tools in the form of a provider, for a request to a model."""
        if format == "openai":
            return [tool.to_openai_schema() for tool in self]
        if format == "anthropic":
            return [tool.to_anthropic_schema() for tool in self]
        raise ValueError(f"there is no format `{format}`; the formats are openai, anthropic")

    async def execute(self, name: str, context: ExecutionContext, /, **kwargs: Any) -> ToolResult:
        """Makes a call by a tool's name, as a model does."""
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
    """Adds Pinfold's tools, which share what they remember: on a session, or on one of their own for each
    working directory, with the settings."""
    if session is not None and (settings or can_use_tool is not None):
        raise TypeError("a session has its own settings; give either")
    tools = file_tools(session or Sessions(can_use_tool=can_use_tool, **settings))
    for tool in tools:
        if tool.name in registry:
            raise ValueError(f"there is a tool `{tool.name}` already")
    for tool in tools:
        registry.register(tool)

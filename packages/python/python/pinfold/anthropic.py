"""The tools of a session for the tool runners of Anthropic's SDK, which has to be installed.

Runners look tools up by name, so the dialect `toolset` serves the calls of managed agents.
"""

from __future__ import annotations

from typing import Any, cast

from anthropic.lib.tools import (
    BetaAsyncBuiltinFunctionTool,
    BetaBuiltinFunctionTool,
    BetaFunctionToolResultType,
    ToolError,
)
from anthropic.types.beta import BetaToolUnionParam

from .context import ExecutionContext
from .results import ToolResult, content_blocks
from .session import Session

__all__ = ["async_runnable_tools", "runnable_tools"]


def runnable_tools(
    session: Session, context: ExecutionContext | None = None
) -> list[BetaBuiltinFunctionTool]:
    """The tools for runners of an `Anthropic` client. `context` holds for every call."""
    return [_Tool(session, entry, context) for entry in session.tool_schemas("anthropic")]


def async_runnable_tools(
    session: Session, context: ExecutionContext | None = None
) -> list[BetaAsyncBuiltinFunctionTool]:
    """The tools for runners of an `AsyncAnthropic` client. `context` holds for every call."""
    return [_AsyncTool(session, entry, context) for entry in session.tool_schemas("anthropic")]


class _Entry:
    """A tool of a session, as a request declares it."""

    def __init__(
        self, session: Session, entry: dict[str, Any], context: ExecutionContext | None
    ) -> None:
        self._session = session
        self._entry = entry
        self._context = context

    def to_dict(self) -> BetaToolUnionParam:
        return cast("BetaToolUnionParam", dict(self._entry))


class _Tool(_Entry, BetaBuiltinFunctionTool):
    def call(self, input: object) -> BetaFunctionToolResultType:
        # The engine refuses arguments that are no mapping.
        return _content(self._session.run(self.name, cast("Any", input), self._context))


class _AsyncTool(_Entry, BetaAsyncBuiltinFunctionTool):
    async def call(self, input: object) -> BetaFunctionToolResultType:
        return _content(await self._session.execute(self.name, cast("Any", input), self._context))


def _content(result: ToolResult) -> BetaFunctionToolResultType:
    """The content of a result. Raises `ToolError` for a failure, which the runner marks with `is_error`."""
    content = cast("BetaFunctionToolResultType", content_blocks(result))
    if not result.success:
        raise ToolError(content)
    return content

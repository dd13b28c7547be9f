"""The context of a call: working directory, mode, approval callback and cancellation."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from os import PathLike
from typing import Any, TypeAlias, TypedDict, Union


class Question(TypedDict):
    """An approval request."""

    # The question on one line.
    question: str
    # The tool that the agent calls.
    tool: str
    # The operation: `Read`, `Write` or `Delete`.
    operation: str
    # The path, as the agent gave it.
    given: str
    # The real path of the file or directory.
    path: str
    # Why the user is asked.
    reason: str
    # The diff of the change, if it can be shown.
    diff: str | None


@dataclass(frozen=True)
class Decision:
    """The answer to an approval request."""

    allow: bool
    # The reason for a denial, for the agent.
    message: str | None = None
    # Whether the approval covers the same operation on the same file for the whole session.
    remember: bool = False


Answer: TypeAlias = Union[bool, Decision]

# Answers approval requests. It gets the name of the tool and its arguments, and also the request if it takes three
# parameters or one called `question`. It may be asynchronous. An exception, and anything but a clear yes, denies.
CanUseTool: TypeAlias = Union[
    Callable[[str, dict[str, Any]], Union[Answer, Awaitable[Answer]]],
    Callable[[str, dict[str, Any], Question], Union[Answer, Awaitable[Answer]]],
]


class CancelToken:
    """Cancels the calls that have this token. Their results have the code `cancelled`."""

    def __init__(self) -> None:
        # No lock: a signal handler may call `cancel` while this thread is in `_watch`.
        self._cancelled = False
        self._watchers: dict[Callable[[], object], None] = {}

    def cancel(self) -> None:
        """Cancels the calls. Can be called from any thread and from a signal handler."""
        self._cancelled = True
        while self._watchers:
            try:
                watcher, _ = self._watchers.popitem()
            except KeyError:
                return
            watcher()

    def is_cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled

    def _watch(self, watcher: Callable[[], object]) -> None:
        self._watchers[watcher] = None
        if self._cancelled:
            self.cancel()

    def _forget(self, watcher: Callable[[], object]) -> None:
        self._watchers.pop(watcher, None)


@dataclass
class ExecutionContext:
    """The context of a call."""

    # Where relative paths and searches start. Default: the session's first root. For tools without a session it is
    # also the workspace. Default there: the current directory.
    working_dir: str | PathLike[str] | None = None
    # Whether changes are described instead of made.
    dry_run: bool = False
    # The permission mode. Default: the session's.
    permission_mode: str | None = None
    # Answers approval requests. Default: the session's.
    can_use_tool: CanUseTool | None = None
    # Cancels the call.
    cancel: CancelToken | None = None
    # For tools without a session: each id has a session of its own.
    session_id: str | None = None


def put(callback: CanUseTool, tool: str, args: dict[str, Any], question: Question) -> Any:
    """Calls the callback with as many arguments as it takes."""
    asked: Callable[..., Any] = callback
    try:
        signature = inspect.signature(asked)
    except (TypeError, ValueError):  # a builtin without a signature
        return asked(tool, args)
    named = signature.parameters.get("question")
    if named is not None and named.kind is not inspect.Parameter.POSITIONAL_ONLY:
        return asked(tool, args, question=question)
    try:
        signature.bind(tool, args)
    except TypeError:
        return asked(tool, args, question)
    return asked(tool, args)


def written(decision: object) -> str:
    """A decision as JSON text. A value of another type denies."""
    if isinstance(decision, Decision):
        decision = {
            "behavior": "allow" if decision.allow is True else "deny",
            "message": decision.message,
            "remember": decision.remember,
        }
    return json.dumps(decision if isinstance(decision, (bool, dict)) else None)


def failure(error: BaseException) -> str:
    """A denial, because the callback failed."""
    problem = str(error) or type(error).__name__
    return json.dumps({"failed": f"the approval callback failed: {problem}"})

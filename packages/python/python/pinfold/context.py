"""What holds for one call, and who decides about it."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from os import PathLike
from typing import Any, TypeAlias, TypedDict, Union


class Question(TypedDict):
    """What a person is to be asked."""

    # The question on one line.
    question: str
    # The tool that the agent calls.
    tool: str
    # What it would do: `Read`, `Write` or `Delete`.
    operation: str
    # The path, as the agent gave it.
    given: str
    # The file or directory that it leads to.
    path: str
    # Why the question comes up.
    reason: str
    # What would change, where that can be shown.
    diff: str | None


@dataclass(frozen=True)
class Decision:
    """An answer to a question."""

    allow: bool
    # Words for the agent that go with a no.
    message: str | None = None
    # After a yes: the same operation on the same file is not asked about again in this session.
    remember: bool = False


Answer: TypeAlias = Union[bool, Decision]

# Decides whether a tool may do something, given its name and its arguments; and the question, if it takes three
# or calls one `question`. Whatever it raises is a no, and so is anything but a clear yes. It may be asynchronous.
CanUseTool: TypeAlias = Union[
    Callable[[str, dict[str, Any]], Union[Answer, Awaitable[Answer]]],
    Callable[[str, dict[str, Any], Question], Union[Answer, Awaitable[Answer]]],
]


class CancelToken:
    """Ends the calls that it was given to: their results then have the code `cancelled`."""

    def __init__(self) -> None:
        # Without a lock, since a signal's handler may cancel what it has interrupted.
        self._cancelled = False
        self._watchers: dict[Callable[[], object], None] = {}

    def cancel(self) -> None:
        """Asks the calls to end soon. From any thread, or a signal's handler."""
        self._cancelled = True
        while self._watchers:
            try:
                watcher, _ = self._watchers.popitem()
            except KeyError:
                return
            watcher()

    def is_cancelled(self) -> bool:
        """Whether that was asked."""
        return self._cancelled

    def _watch(self, watcher: Callable[[], object]) -> None:
        self._watchers[watcher] = None
        if self._cancelled:
            self.cancel()

    def _forget(self, watcher: Callable[[], object]) -> None:
        self._watchers.pop(watcher, None)


@dataclass
class ExecutionContext:
    """What holds for one call."""

    # Where relative paths and searches start; where the session does if not given. For tools without a session it
    # is also their workspace, and the current directory if not given.
    working_dir: str | PathLike[str] | None = None
    # Describe changes, and make none.
    dry_run: bool = False
    # The mode, in place of the session's.
    permission_mode: str | None = None
    # Decides, in place of the session's.
    can_use_tool: CanUseTool | None = None
    # Lets somebody end the call.
    cancel: CancelToken | None = None
    # Tells conversations apart, for tools without a session: each remembers what it has read.
    session_id: str | None = None


def put(callback: CanUseTool, tool: str, args: dict[str, Any], question: Question) -> Any:
    """Asks whoever decides, with as much as they take."""
    asked: Callable[..., Any] = callback
    try:
        signature = inspect.signature(asked)
    except (TypeError, ValueError):  # a builtin that does not say what it takes
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
    """A decision as the engine takes it. What is no decision is no yes either."""
    if isinstance(decision, Decision):
        decision = {
            "behavior": "allow" if decision.allow is True else "deny",
            "message": decision.message,
            "remember": decision.remember,
        }
    return json.dumps(decision if isinstance(decision, (bool, dict)) else None)


def failure(error: BaseException) -> str:
    """The decision of somebody who could not decide."""
    words = str(error) or type(error).__name__
    decision = {"behavior": "deny", "message": f"whoever decides here failed: {words}"}
    return json.dumps(decision)

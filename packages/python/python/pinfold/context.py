"""What holds for one call, and who decides about it."""

from __future__ import annotations

import inspect
import threading
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

# Decides whether a tool may do something, given its name and its arguments, and the question as a third
# if it takes that. Whatever it raises is a no, and so is anything but a clear yes. It may be asynchronous.
CanUseTool: TypeAlias = Union[
    Callable[[str, dict[str, Any]], Union[Answer, Awaitable[Answer]]],
    Callable[[str, dict[str, Any], Question], Union[Answer, Awaitable[Answer]]],
]


class CancelToken:
    """Ends the calls that it was given to: their results then have the code `cancelled`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._watchers: list[Callable[[], object]] = []

    def cancel(self) -> None:
        """Asks the calls to end soon. From any thread."""
        with self._lock:
            self._cancelled = True
            watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            watcher()

    def is_cancelled(self) -> bool:
        """Whether that was asked."""
        return self._cancelled

    def _watch(self, watcher: Callable[[], object]) -> None:
        with self._lock:
            if not self._cancelled:
                self._watchers.append(watcher)
                return
        watcher()

    def _forget(self, watcher: Callable[[], object]) -> None:
        with self._lock:
            if watcher in self._watchers:
                self._watchers.remove(watcher)


@dataclass
class ExecutionContext:
    """What holds for one call."""

    # Where relative paths and searches start. For tools without a session, it is also their workspace.
    working_dir: str | PathLike[str] = "."
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
    try:
        inspect.signature(callback).bind(tool, args, question)
    except TypeError:
        return callback(tool, args)  # type: ignore[call-arg]
    except ValueError:  # a builtin that does not say what it takes
        pass
    return callback(tool, args, question)  # type: ignore[call-arg]


def as_json(decision: object) -> object:
    """A decision as the engine takes it. What is no decision is no yes either."""
    if isinstance(decision, Decision):
        behavior = "allow" if decision.allow is True else "deny"
        return {
            "behavior": behavior,
            "message": decision.message,
            "remember": decision.remember is True,
        }
    return decision if isinstance(decision, (bool, dict)) else None


def failure(error: BaseException) -> dict[str, str]:
    """The decision of somebody who could not decide."""
    words = str(error) or type(error).__name__
    return {"behavior": "deny", "message": f"whoever decides here failed: {words}"}

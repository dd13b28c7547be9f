"""Sessions: the tools on a workspace."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import contextvars
import inspect
import json
import os
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Union, cast

from . import _native
from .context import CancelToken, CanUseTool, ExecutionContext, failure, put, written
from .results import (
    PatchResult,
    PinfoldError,
    Rewound,
    ToolResult,
    parse_result,
    patch_result,
    rewound,
    tool_result_block,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._settings import Dialect, Settings
    from .tools import FileTool

StrPath: TypeAlias = Union[str, "PathLike[str]"]
SchemaFormat: TypeAlias = Literal["openai", "anthropic", "gemini", "mcp"]

# How many sessions `Sessions` keeps; the least recently used one is dropped first.
_MAX_SESSIONS = 256


class Session:
    """The tools on a workspace, for one agent. A session records which files were read.

    Calls can be made from several threads and tasks at once. Settings are keywords, by their names in the
    configuration file; invalid ones raise `ValueError`.
    """

    def __init__(
        self,
        root: StrPath | Sequence[StrPath] = ".",
        *,
        dialect: Dialect | Sequence[Dialect] = "classic",
        can_use_tool: CanUseTool | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        self._native = _native.Tools(_options({"root": _paths(root), "dialect": dialect, **settings}))
        self._can_use_tool = _callable(can_use_tool)

    def call(self, name: str, /, **args: Any) -> ToolResult:
        """Calls a tool and waits for its result. Failures are results, not exceptions."""
        return self.run(name, args)

    def run(
        self, name: str, args: Mapping[str, Any], context: ExecutionContext | None = None
    ) -> ToolResult:
        """Calls a tool with a context."""
        return self._run(_Job(self, name, args, context))

    def _run(self, job: _Job) -> ToolResult:

        def ask(question: str) -> str:
            try:
                decision = job.put(question)
                if inspect.isawaitable(decision):
                    decision = _wait_for(decision)
                return written(decision)
            except Exception as error:
                return failure(error)

        with job:
            answer = self._native.call(
                job.name, job.text, job.about, job.native, ask if job.asks else None
            )
        return parse_result(answer)

    async def execute(
        self, name: str, args: Mapping[str, Any], context: ExecutionContext | None = None
    ) -> ToolResult:
        """Calls a tool without blocking the event loop. If the task is cancelled, so is the call."""
        return await self._execute(_Job(self, name, args, context))

    async def _execute(self, job: _Job) -> ToolResult:
        loop = asyncio.get_running_loop()
        settled: asyncio.Future[str] = loop.create_future()
        around = contextvars.copy_context()
        asked: list[asyncio.Task[None]] = []

        def done(answer: str) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_settle, settled, answer)

        async def decide(question: str) -> None:
            decided = "false"
            try:
                decision = job.put(question)
                if inspect.isawaitable(decision):
                    decision = await decision
                decided = written(decision)
            except Exception as error:
                decided = failure(error)
            finally:
                job.native.decide(decided)

        def begin(question: str) -> None:
            asked.append(loop.create_task(decide(question)))

        def ask(question: str) -> None:
            try:
                loop.call_soon_threadsafe(begin, question, context=around)
            except RuntimeError:
                job.native.decide("false")

        with job:
            self._native.start(
                job.name, job.text, job.about, job.native, ask if job.asks else None, done
            )
            try:
                answer = await asyncio.shield(settled)
            except asyncio.CancelledError:
                job.native.cancel()
                # No change may be made after the exception was raised.
                await asyncio.wait([settled])
                raise
            finally:
                for task in asked:
                    task.cancel()
        return parse_result(answer)

    def checkpoint(self, label: str = "") -> str:
        """Adds a checkpoint: `rewind` can undo everything that is changed after it. Returns the
        checkpoint's id. Needs the setting `journal`; raises `PinfoldError` without one."""
        result = self._run(_Job(self, "checkpoint", {"label": label}, None, operation="checkpoint"))
        return cast("str", _data(result)["id"])

    def rewind(
        self,
        to: str,
        *,
        dry_run: bool = False,
        everybody: bool = False,
        leave_out_conflicts: bool = False,
        context: ExecutionContext | None = None,
    ) -> Rewound:
        """Undoes all changes of this session since a checkpoint, by its id or label, or after a
        change, by its id: all of them, or none if somebody else has changed one of the files since. With
        `leave_out_conflicts`, such files are left as they are. With `everybody` the changes of other sessions are undone, too. Raises
        `PinfoldError` if that cannot be planned."""
        job = self._rewinding(to, dry_run, everybody, leave_out_conflicts, context)
        return rewound(_data(self._run(job)))

    async def execute_rewind(
        self,
        to: str,
        *,
        dry_run: bool = False,
        everybody: bool = False,
        leave_out_conflicts: bool = False,
        context: ExecutionContext | None = None,
    ) -> Rewound:
        """The same, without blocking the event loop."""
        job = self._rewinding(to, dry_run, everybody, leave_out_conflicts, context)
        return rewound(_data(await self._execute(job)))

    def _rewinding(
        self,
        to: str,
        dry_run: bool,
        everybody: bool,
        leave_out_conflicts: bool,
        context: ExecutionContext | None,
    ) -> _Job:
        args = {"to": to, "everybody": everybody, "leave_out_conflicts": leave_out_conflicts}
        about = context or ExecutionContext()
        about = replace(about, dry_run=dry_run or about.dry_run)
        return _Job(self, "rewind", args, about, operation="rewind")

    def tool_result(self, block: Any, context: ExecutionContext | None = None) -> dict[str, Any]:
        """Makes the call that a `tool_use` block of Anthropic's messages asks for, and gives back its
        `tool_result` block. The block is one of the SDK's, or a plain `dict`."""
        id, name, args = _tool_use(block)
        return tool_result_block(id, self.run(name, args, context))

    async def execute_tool_use(
        self, block: Any, context: ExecutionContext | None = None
    ) -> dict[str, Any]:
        """The same, without blocking the event loop."""
        id, name, args = _tool_use(block)
        return tool_result_block(id, await self.execute(name, args, context))

    def patch_result(self, call: Any, context: ExecutionContext | None = None) -> PatchResult:
        """Applies the operation of an `apply_patch_call` item of OpenAI's responses, and gives back the status and
        the output of its `apply_patch_call_output`. Takes the item or its operation, one of the SDK's or a plain
        `dict`. The session may have any dialect. Failures are outputs, not exceptions."""
        return patch_result(self._run(self._patching(call, context)))

    async def execute_patch_call(
        self, call: Any, context: ExecutionContext | None = None
    ) -> PatchResult:
        """The same, without blocking the event loop."""
        return patch_result(await self._execute(self._patching(call, context)))

    def _patching(self, call: Any, context: ExecutionContext | None) -> _Job:
        dump = getattr(call, "model_dump", None)
        item = dump() if callable(dump) else call
        return _Job(self, "apply_patch", item, context, operation="hosted_patch")

    @property
    def tools(self) -> list[FileTool]:
        """The `classic` tools, on this session."""
        from .tools import file_tools

        return file_tools(self)

    def tool_schemas(self, format: SchemaFormat) -> list[dict[str, Any]]:
        """The tools in the format of a model provider."""
        return _listed(self._native.schemas(format))

    def format_compact_params(self, name: str, args: Mapping[str, Any]) -> str:
        """The arguments of a call on one line, for the user."""
        return self._native.compact_params(name, _options(args))


class Sessions:
    """A session for each working directory, all with the same settings, for tools that have no session of
    their own."""

    def __init__(
        self, *, can_use_tool: CanUseTool | None = None, **settings: Unpack[Settings]
    ) -> None:
        for name in ("root", "dialect"):
            if name in settings:
                raise TypeError(f"`{name}` is for a `Session`; here the working directory is the root")
        _native.check(_options(settings))
        self._can_use_tool = _callable(can_use_tool)
        self._settings = settings
        self._open: OrderedDict[tuple[object, ...], Session] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, context: ExecutionContext) -> Session:
        """The session for a context's working directory and `session_id`."""
        directory = os.path.abspath(os.fsdecode(context.working_dir or "."))
        try:
            there = os.stat(directory)
        except OSError as error:
            raise ValueError(f"cannot use `{directory}` as a root: {error.strerror}") from None
        # Another directory may have taken this path since.
        key = (directory, there.st_dev, there.st_ino, context.session_id)
        with self._lock:
            session = self._open.get(key)
            if session is None:
                session = Session(directory, can_use_tool=self._can_use_tool, **self._settings)
                self._open[key] = session
            self._open.move_to_end(key)
            while len(self._open) > _MAX_SESSIONS:
                self._open.popitem(last=False)
        return session


class _Job:
    """One call: its name, arguments and context as JSON text, and its cancellation."""

    def __init__(
        self,
        session: Session,
        name: str,
        args: Mapping[str, Any],
        context: ExecutionContext | None,
        # The operation to perform instead of calling a tool. No model can name it.
        operation: str | None = None,
    ) -> None:
        context = context or ExecutionContext()
        # No tool has a name with surrogates in it.
        self.name = str(name).encode("utf-8", "replace").decode()
        self.native = _native.Call()
        self.token = context.cancel
        if self.token is not None and not isinstance(self.token, CancelToken):
            raise TypeError("`cancel` must be a `CancelToken`")
        chosen = context.can_use_tool
        self.can_use_tool = session._can_use_tool if chosen is None else _callable(chosen)
        self.asks = self.can_use_tool is not None
        about: dict[str, Any] = {"dry_run": True if context.dry_run else None, "operation": operation}
        try:
            if context.working_dir is not None:
                # Relative to the current directory now, not when the call runs.
                about["workdir"] = os.path.abspath(os.fsdecode(context.working_dir))
            if context.permission_mode is not None:
                about["permission_mode"] = str(context.permission_mode)
            about_text = json.dumps(about)
        except (TypeError, ValueError) as error:
            about_text = _problem("the call's context", error)
        self.text = "null"
        try:
            # The engine refuses arguments that are no mapping.
            given = dict(args) if isinstance(args, Mapping) else args
            self.text = json.dumps(given, default=_plain, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            about_text = _problem("the arguments are not JSON", error)
        self.about = about_text

    def put(self, question: str) -> Any:
        """Passes an approval request to the callback, with a copy of the arguments that the call runs with."""
        assert self.can_use_tool is not None, "without a callback there are no approval requests"
        return put(self.can_use_tool, self.name, json.loads(self.text), json.loads(question))

    def __enter__(self) -> None:
        if self.token is not None:
            self.token._watch(self.native.cancel)

    def __exit__(self, *_: object) -> None:
        if self.token is not None:
            self.token._forget(self.native.cancel)


def tool_schemas(
    format: SchemaFormat, dialect: Dialect | Sequence[Dialect] = "classic"
) -> list[dict[str, Any]]:
    """The tools of some dialects in the format of a model provider."""
    dialects = [dialect] if isinstance(dialect, str) else list(dialect)
    return _listed(_native.schemas(format, [str(name) for name in dialects]))


def _data(result: ToolResult) -> dict[str, Any]:
    """The data of an operation. Raises `PinfoldError` if it failed."""
    if not result.success:
        raise PinfoldError(result.error or "", str(result.metadata.get("code")))
    return cast("dict[str, Any]", result.data)


def _tool_use(block: Any) -> tuple[str, str, Any]:
    """The id, the tool and the arguments of a `tool_use` block."""
    if isinstance(block, Mapping):
        return block["id"], block["name"], block["input"]
    return block.id, block.name, block.input


def _listed(text: str) -> list[dict[str, Any]]:
    tools = json.loads(text)
    return cast("list[dict[str, Any]]", tools["tools"] if isinstance(tools, dict) else tools)


def _paths(root: StrPath | Sequence[StrPath]) -> list[str]:
    roots = [root] if isinstance(root, (str, bytes, os.PathLike)) else root
    if not isinstance(roots, Sequence):
        raise TypeError(f"`root` must be a path or a list of paths, not {type(root).__name__}")
    paths = [os.fsdecode(path) for path in roots]
    for path in paths:
        path.encode()  # raises `UnicodeEncodeError` for a name that is not UTF-8
    return paths


def _problem(what: str, error: Exception) -> str:
    return json.dumps({"problem": f"{what}: {error}".encode("utf-8", "replace").decode()})


def _options(options: Mapping[str, Any]) -> str:
    return json.dumps(dict(options), default=_plain)


def _callable(can_use_tool: CanUseTool | None) -> CanUseTool | None:
    if can_use_tool is not None and not callable(can_use_tool):
        raise TypeError("`can_use_tool` must be callable")
    return can_use_tool


def _plain(value: object) -> str:
    """Paths as JSON."""
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _settle(future: asyncio.Future[str], answer: str) -> None:
    if not future.done():
        future.set_result(answer)


def _wait_for(decision: Awaitable[Any]) -> Any:
    """Waits for an asynchronous decision in a blocking call, on an event loop of its own."""

    async def waited() -> Any:
        return await decision

    loop = asyncio.new_event_loop()
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return loop.run_until_complete(waited())
    finally:
        loop.close()
    if inspect.iscoroutine(decision):
        decision.close()
    raise RuntimeError("in a running event loop, only `await execute` can await a decision")


# The interpreter must not end while a thread of the pool is in it.
atexit.register(_native.end)
os.register_at_fork(after_in_child=_native.forked)

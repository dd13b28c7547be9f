"""One agent's conversation with a workspace."""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import json
import os
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Union, cast

from . import _native
from .context import CancelToken, CanUseTool, ExecutionContext, as_json, failure, put
from .results import ToolResult, parse_result

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._settings import Settings
    from .tools import FileTool

StrPath: TypeAlias = Union[str, "PathLike[str]"]
Dialect: TypeAlias = Literal["classic", "dotted", "scoped", "all"]
SchemaFormat: TypeAlias = Literal["openai", "anthropic", "gemini", "mcp"]

# How many sessions `Sessions` keeps; the one that was not used for longest goes first.
_MOST_SESSIONS = 256


class Session:
    """One agent's conversation with a workspace: it remembers what was read.

    Calls can be made from several threads and tasks at once. Settings are keywords, by their names in the
    configuration file; what is wrong with them is a `ValueError`.
    """

    def __init__(
        self,
        root: StrPath | Sequence[StrPath] = ".",
        *,
        dialect: Dialect | Sequence[Dialect] = "classic",
        can_use_tool: CanUseTool | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        roots = [root] if isinstance(root, (str, os.PathLike)) else list(root)
        if can_use_tool is not None and not callable(can_use_tool):
            raise TypeError("`can_use_tool` must be callable")
        options = {"root": roots, "dialect": dialect, **settings}
        self._native = _native.Tools(json.dumps(options, default=_plain))
        self._can_use_tool = can_use_tool

    def call(self, name: str, /, **args: Any) -> ToolResult:
        """Makes a call and waits for its result. Failures are results, not exceptions."""
        return self.run(name, args)

    def run(
        self, name: str, args: Mapping[str, Any], context: ExecutionContext | None = None
    ) -> ToolResult:
        """The same, with something said for this call alone."""
        job = _Job(self, name, args, context)

        def ask(question: str) -> str:
            try:
                decision = job.put(question)
                if inspect.isawaitable(decision):
                    decision = asyncio.run(_waited(decision))
            except Exception as error:
                decision = failure(error)
            return json.dumps(as_json(decision), default=_plain)

        with job:
            answer = self._native.call(
                name, job.text, job.about, job.native, ask if job.can_use_tool else None
            )
        return parse_result(answer)

    async def execute(
        self, name: str, args: Mapping[str, Any], context: ExecutionContext | None = None
    ) -> ToolResult:
        """Makes a call without blocking the event loop. If the task is cancelled, so is the call."""
        loop = asyncio.get_running_loop()
        job = _Job(self, name, args, context)
        settled: asyncio.Future[str] = loop.create_future()

        def done(answer: str) -> None:
            try:
                loop.call_soon_threadsafe(_settle, settled, answer)
            except RuntimeError:
                pass  # the loop is closed: nobody waits any more

        async def decide(question: str) -> str:
            try:
                decision = job.put(question)
                if inspect.isawaitable(decision):
                    decision = await decision
            except Exception as error:
                decision = failure(error)
            return json.dumps(as_json(decision), default=_plain)

        def ask(question: str) -> str:
            coroutine = decide(question)
            try:
                pending = asyncio.run_coroutine_threadsafe(coroutine, loop)
            except RuntimeError:
                coroutine.close()
                return "false"
            job.token._watch(pending.cancel)
            try:
                return pending.result()
            except concurrent.futures.CancelledError:
                return "false"
            finally:
                job.token._forget(pending.cancel)

        with job:
            self._native.start(
                name, job.text, job.about, job.native, ask if job.can_use_tool else None, done
            )
            try:
                answer = await asyncio.shield(settled)
            except asyncio.CancelledError:
                job.token.cancel()
                # What it did after this would surprise.
                await asyncio.wait([settled])
                raise
        return parse_result(answer)

    @property
    def tools(self) -> list[FileTool]:
        """The `classic` tools, on this session."""
        from .tools import file_tools

        return file_tools(self)

    def tool_schemas(self, format: SchemaFormat) -> list[dict[str, Any]]:
        """The tools in the form of a provider, for a request to a model."""
        return _listed(self._native.schemas(format))

    def format_compact_params(self, name: str, args: Mapping[str, Any]) -> str:
        """The arguments of a call on one line, for a person."""
        return self._native.compact(name, json.dumps(dict(args), default=_plain))


class Sessions:
    """A session for each working directory, all with the same settings: what tools have that are used with
    an `ExecutionContext` alone."""

    def __init__(
        self, *, can_use_tool: CanUseTool | None = None, **settings: Unpack[Settings]
    ) -> None:
        self._can_use_tool = can_use_tool
        self._settings = settings
        self._open: OrderedDict[tuple[str, str | None], Session] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, context: ExecutionContext) -> Session:
        """The session for a context's working directory and `session_id`."""
        directory = os.path.realpath(context.working_dir)
        key = (directory, context.session_id)
        with self._lock:
            session = self._open.get(key)
            if session is None:
                session = Session(directory, can_use_tool=self._can_use_tool, **self._settings)
                self._open[key] = session
            self._open.move_to_end(key)
            while len(self._open) > _MOST_SESSIONS:
                self._open.popitem(last=False)
        return session


class _Job:
    """One call: what the engine is told, and what ends it."""

    def __init__(
        self,
        session: Session,
        name: str,
        args: Mapping[str, Any],
        context: ExecutionContext | None,
    ) -> None:
        # What is no mapping is refused by the engine, in its own words.
        self.args: Any = dict(args) if isinstance(args, Mapping) else args
        self.native = _native.Cancel()
        # The context's own token may end other calls too; this one ends with either.
        self.token = CancelToken()
        self.outer = context.cancel if context else None
        chosen = context.can_use_tool if context else None
        self.name = name
        self.can_use_tool = chosen or session._can_use_tool
        about: dict[str, Any] = {}
        if context is not None:
            about = {
                "workdir": context.working_dir,
                "permission_mode": context.permission_mode,
                "dry_run": True if context.dry_run else None,
            }
        self.text = "null"
        try:
            self.text = json.dumps(self.args, default=_plain, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            about["problem"] = str(error)
        self.about = json.dumps(about, default=_plain)

    def put(self, question: str) -> Any:
        """Puts a question to whoever decides."""
        assert self.can_use_tool is not None, "nobody is asked if nobody decides"
        return put(self.can_use_tool, self.name, self.args, json.loads(question))

    def __enter__(self) -> None:
        self.token._watch(self.native.cancel)
        if self.outer is not None:
            self.outer._watch(self.token.cancel)

    def __exit__(self, *_: object) -> None:
        if self.outer is not None:
            self.outer._forget(self.token.cancel)


def tool_schemas(
    format: SchemaFormat, dialect: Dialect | Sequence[Dialect] = "classic"
) -> list[dict[str, Any]]:
    """The tools of some dialects in the form of a provider, for a request to a model."""
    dialects = [dialect] if isinstance(dialect, str) else list(dialect)
    return _listed(_native.schemas(format, [str(name) for name in dialects]))


def _listed(text: str) -> list[dict[str, Any]]:
    tools = json.loads(text)
    return cast("list[dict[str, Any]]", tools["tools"] if isinstance(tools, dict) else tools)


def _plain(value: object) -> str:
    """What JSON does not know, but a person would write as text."""
    if isinstance(value, os.PathLike):
        path = os.fspath(value)
        if isinstance(path, str):
            return path
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _settle(future: asyncio.Future[str], answer: str) -> None:
    if not future.done():
        future.set_result(answer)


async def _waited(decision: Awaitable[Any]) -> Any:
    return await decision

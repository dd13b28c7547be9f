from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from typing import Any

import pinfold
from pinfold import (
    BaseTool,
    CancelToken,
    EditTool,
    ExecutionContext,
    GrepTool,
    ReadTool,
    Session,
    ToolCategory,
    ToolParameter,
    ToolRegistry,
    ToolResult,
    WriteTool,
    register_file_tools,
    tool_schemas,
)
from workspace import AsyncWorkspace

NAMES = ["Read", "Write", "Edit", "MultiEdit", "NotebookEdit", "Delete", "Move", "LS", "Glob", "Grep"]


class Shout(BaseTool):
    """A tool of somebody's own."""

    @property
    def name(self) -> str:
        return "Shout"

    @property
    def description(self) -> str:
        return "Says something loudly."

    @property
    def parameters(self) -> list[ToolParameter]:
        return [
            ToolParameter("text", "string", "What to say.", required=True),
            ToolParameter("times", "integer", default=1, minimum=1, maximum=3),
        ]

    async def _execute(self, context: ExecutionContext, **kwargs: Any) -> ToolResult:
        return ToolResult.ok(kwargs["text"].upper() * kwargs.get("times", 1), loud=True)


class Shapes(AsyncWorkspace):
    async def test_tools_describe_themselves(self) -> None:
        read = ReadTool()
        self.assertEqual((read.name, read.category), ("Read", ToolCategory.FILE))
        self.assertIn("Reads a file", read.description)
        by_name = {parameter.name: parameter for parameter in read.parameters}
        self.assertEqual(list(by_name), ["file_path", "offset", "limit", "pages"])
        self.assertTrue(by_name["file_path"].required)
        self.assertEqual((by_name["limit"].minimum, by_name["limit"].maximum), (1, 10000))
        grep = {parameter.name: parameter for parameter in GrepTool().parameters}
        self.assertIn("count", grep["output_mode"].enum or [])
        for tool in Session(self.root).tools:
            # What a tool says of its parameters is what the model is shown.
            self.assertEqual(BaseTool.input_schema.fget(tool), tool.input_schema)  # type: ignore[attr-defined]

    async def test_a_registry_has_all_tools_and_their_schemas(self) -> None:
        registry = ToolRegistry()
        register_file_tools(registry)
        self.assertEqual(registry.names(), NAMES)
        self.assertEqual(registry.get_all_schemas("openai"), tool_schemas("openai"))
        for format in ("anthropic", "gemini", "mcp"):
            self.assertEqual(registry.get_all_schemas(format), tool_schemas(format))
        with self.assertRaisesRegex(ValueError, "the formats are"):
            registry.get_all_schemas("morse")  # type: ignore[arg-type]
        with self.assertRaisesRegex(ValueError, "`Read` already"):
            registry.register(ReadTool())
        self.assertIn("Grep", registry)
        self.assertEqual(len(registry), len(NAMES))

    async def test_a_registry_takes_other_tools_too(self) -> None:
        registry = ToolRegistry()
        registry.register(Shout())
        context = ExecutionContext(self.root)
        result = await registry.execute("Shout", context, text="hey", times=2)
        self.assertEqual((result.output, result.metadata), ("HEYHEY", {"loud": True}))
        failed = await registry.execute("Shout", context)
        self.assertFalse(failed.success)
        unknown = await registry.execute("Whisper", context)
        self.assertEqual(unknown.metadata["code"], "unknown_tool")
        schema = registry.get_all_schemas("anthropic")[0]["input_schema"]
        self.assertEqual(schema["required"], ["text"])
        self.assertEqual(schema["properties"]["times"]["default"], 1)

    async def test_everything_that_is_exported_is_there(self) -> None:
        for name in pinfold.__all__:
            self.assertTrue(hasattr(pinfold, name), name)


class Calls(AsyncWorkspace):
    async def test_tools_without_a_session_share_one_for_each_working_directory(self) -> None:
        path = self.write("a.txt", "one\n")
        edit = {"file_path": path, "old_string": "one", "new_string": "two"}
        # A new context for every call, as some agents have it.
        read = await ReadTool().execute(ExecutionContext(self.root), file_path=path)
        self.assertTrue(read.success, read.error)
        other = await EditTool().execute(ExecutionContext(self.root, session_id="other"), **edit)
        self.assertEqual(other.metadata["code"], "not_read")
        done = await EditTool().execute(ExecutionContext(self.root), **edit)
        self.assertTrue(done.success, done.error)
        self.assertEqual(self.read("a.txt"), "two\n")

    async def test_the_working_directory_is_the_fence(self) -> None:
        self.write("sub/a.txt", "x\n")
        secret = self.write("secret.txt", "x\n")
        context = ExecutionContext(self.path("sub"))
        refused = await ReadTool().execute(context, file_path=secret)
        self.assertEqual(refused.metadata["code"], "path_outside_workspace")
        nowhere = ExecutionContext(self.path("nowhere"))
        failed = await ReadTool().execute(nowhere, file_path=secret)
        self.assertEqual(failed.metadata["code"], "invalid_argument")
        self.assertIn("nowhere", failed.error or "")
        wrong: Any = object()
        failed = await ReadTool().execute(ExecutionContext(wrong), file_path=secret)
        self.assertEqual(failed.metadata["code"], "invalid_argument")

    async def test_registries_do_not_share_what_they_remember(self) -> None:
        path = self.write("a.txt", "one\n")
        ours, theirs = ToolRegistry(), ToolRegistry()
        register_file_tools(ours)
        register_file_tools(theirs, read_before_write="require", durability="none")
        context = ExecutionContext(self.root)
        await ours.execute("Read", context, file_path=path)
        write = {"file_path": path, "content": "two\n"}
        refused = await theirs.execute("Write", context, **write)
        self.assertEqual(refused.metadata["code"], "not_read")
        self.assertTrue((await ours.execute("Write", context, **write)).success)
        with self.assertRaises(TypeError):
            register_file_tools(ToolRegistry(), Session(self.root), read_before_write="off")

    async def test_a_directory_that_was_replaced_is_another_one(self) -> None:
        path = self.write("w/a.txt", "old\n")
        context = ExecutionContext(self.path("w"))
        self.assertIn("old", (await ReadTool().execute(context, file_path=path)).output)
        os.rename(self.path("w"), self.path("kept"))
        self.write("w/a.txt", "new\n")
        self.assertIn("new", (await ReadTool().execute(context, file_path=path)).output)
        fresh = await WriteTool().execute(context, file_path=self.path("w/b.txt"), content="b")
        self.assertTrue(fresh.success, fresh.error)
        self.assertEqual(sorted(os.listdir(self.path("w"))), ["a.txt", "b.txt"])
        self.assertEqual(os.listdir(self.path("kept")), ["a.txt"])

    async def test_paths_below_a_linked_directory_are_in_it(self) -> None:
        self.write("real/a.txt", "x\n")
        os.symlink("real", self.path("link"))
        context = ExecutionContext(self.path("link"))
        result = await ReadTool().execute(context, file_path=self.path("link/a.txt"))
        self.assertTrue(result.success, result.error)

    async def test_arguments_can_be_called_what_python_calls_its_own(self) -> None:
        registry = ToolRegistry()
        register_file_tools(registry)
        for name in ("name", "context", "self"):
            kwargs = {"file_path": self.path("a"), name: "x"}
            result = await registry.execute("Read", ExecutionContext(self.root), **kwargs)
            self.assertEqual(result.metadata["code"], "invalid_argument")
            self.assertIn(f"`{name}`", result.error or "")

    async def test_options_of_a_registry_are_looked_at_at_once(self) -> None:
        for options, problem in (
            ({"durabilty": "full"}, ValueError),
            ({"permissions": {"deny": ["Fly"]}}, ValueError),
            ({"dialect": "dotted"}, TypeError),
            ({"root": "/"}, TypeError),
            ({"can_use_tool": "yes"}, TypeError),
        ):
            registry = ToolRegistry()
            wrong: dict[str, Any] = dict(options)
            with self.assertRaises(problem):
                register_file_tools(registry, **wrong)
            self.assertEqual(registry.names(), [])
        registry = ToolRegistry()
        registry.register(EditTool())
        with self.assertRaises(ValueError):
            register_file_tools(registry)
        self.assertEqual(registry.names(), ["Edit"])

    async def test_dry_run_touches_nothing(self) -> None:
        context = ExecutionContext(self.root, dry_run=True)
        path = self.path("new/dir/a.txt")
        result = await WriteTool().execute(context, file_path=path, content="x")
        self.assertTrue(result.output.startswith("[Dry Run] Would"), result)
        self.assertEqual(os.listdir(self.root), [])

    async def test_a_thousand_calls_at_once_are_all_answered(self) -> None:
        paths = [self.write(f"{number}.txt", f"number {number}\n") for number in range(1000)]
        session = Session(self.root)
        calls = [session.execute("Read", {"file_path": path}) for path in paths]
        for number, result in enumerate(await asyncio.gather(*calls)):
            self.assertEqual(result.output, f"     1\tnumber {number}\n")

    async def test_a_hundred_edits_at_once_are_all_in_the_file(self) -> None:
        path = self.write("a.txt", "".join(f"<{number}>\n" for number in range(100)))
        session = Session(self.root, durability="none")
        await session.execute("Read", {"file_path": path})
        edits = [
            session.execute(
                "Edit", {"file_path": path, "old_string": f"<{n}>", "new_string": f"[{n}]"}
            )
            for n in range(100)
        ]
        for result in await asyncio.gather(*edits):
            self.assertTrue(result.success, result.error)
        self.assertEqual(self.read("a.txt"), "".join(f"[{n}]\n" for n in range(100)))

    async def test_threads_can_share_a_session(self) -> None:
        path = self.write("a.txt", "one\n")
        session = Session(self.root)
        results: list[ToolResult] = []

        def work() -> None:
            for _ in range(20):
                results.append(session.call("Read", file_path=path))

        threads = [threading.Thread(target=work) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([result.output for result in results], ["     1\tone\n"] * 400)


class Asking(AsyncWorkspace):
    def asking(self, can_use_tool: Any = None) -> Session:
        return Session(
            self.root, can_use_tool=can_use_tool, durability="none", permissions={"mode": "default"}
        )

    async def test_questions_are_put_on_the_event_loop(self) -> None:
        loop = asyncio.get_running_loop()

        async def decide(tool: str, args: dict[str, Any]) -> bool:
            self.assertIs(asyncio.get_running_loop(), loop)
            await asyncio.sleep(0)
            return True

        write = {"file_path": self.path("new"), "content": "x"}
        result = await self.asking(decide).execute("Write", write)
        self.assertTrue(result.success, result.error)

        def plainly(tool: str, args: dict[str, Any]) -> bool:
            return asyncio.get_running_loop() is loop

        context = ExecutionContext(self.root, can_use_tool=plainly)
        edit = {"file_path": self.path("new"), "old_string": "x", "new_string": "y"}
        result = await self.asking().execute("Delete", {"path": edit["file_path"]}, context)
        self.assertTrue(result.success, result.error)

    async def test_who_decides_knows_for_whom(self) -> None:
        user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")

        async def decide(tool: str, args: dict[str, Any]) -> bool:
            return user.get() == "alice"

        user.set("alice")
        write = {"file_path": self.path("new"), "content": "x"}
        result = await self.asking(decide).execute("Write", write)
        self.assertTrue(result.success, result.error)

    async def test_what_is_decided_about_is_what_is_done(self) -> None:
        async def decide(tool: str, args: dict[str, Any]) -> bool:
            return bool(args["content"] == "harmless")

        args = {"file_path": self.path("new"), "content": "evil"}
        task = asyncio.create_task(self.asking(decide).execute("Write", args))
        await asyncio.sleep(0)
        args["content"] = "harmless"
        self.assertFalse((await task).success)
        self.assertFalse(os.path.exists(self.path("new")))

    async def test_callbacks_that_raise_are_a_no(self) -> None:
        async def broken(tool: str, args: dict[str, Any]) -> bool:
            raise RuntimeError("the dialog is broken")

        write = {"file_path": self.path("new"), "content": "x"}
        result = await self.asking(broken).execute("Write", write)
        self.assertEqual(result.metadata["code"], "permission_denied")
        self.assertIn("the dialog is broken", result.error or "")
        self.assertFalse(os.path.exists(self.path("new")))

    async def test_a_thousand_questions_at_once_wait_for_nobody_but_their_own_answer(self) -> None:
        everybody = asyncio.Event()
        asked = 0

        async def decide(tool: str, args: dict[str, Any]) -> bool:
            nonlocal asked
            asked += 1
            if asked == 1000:
                everybody.set()
            await everybody.wait()
            return bool(args["content"] == "even")

        session = self.asking(decide)
        calls = [
            session.execute(
                "Write",
                {"file_path": self.path(f"{n}.txt"), "content": "odd" if n % 2 else "even"},
            )
            for n in range(1000)
        ]
        for number, result in enumerate(await asyncio.gather(*calls)):
            self.assertEqual(result.success, number % 2 == 0, result.error)

    async def test_a_cancelled_task_cancels_its_call(self) -> None:
        asked = asyncio.Event()

        async def decide(tool: str, args: dict[str, Any]) -> bool:
            asked.set()
            await asyncio.Event().wait()
            return True

        write = {"file_path": self.path("new"), "content": "x"}
        task = asyncio.create_task(self.asking(decide).execute("Write", write))
        await asked.wait()
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        self.assertFalse(os.path.exists(self.path("new")))

    async def test_a_token_ends_a_call_that_waits_for_somebody(self) -> None:
        token = CancelToken()

        async def decide(tool: str, args: dict[str, Any]) -> bool:
            token.cancel()
            await asyncio.Event().wait()
            return True

        context = ExecutionContext(self.root, can_use_tool=decide, cancel=token)
        write = {"file_path": self.path("new"), "content": "x"}
        result = await self.asking().execute("Write", write, context)
        self.assertEqual(result.metadata["code"], "cancelled")
        # A token that was used up ends what comes after it, too.
        result = await self.asking().execute("LS", {"path": self.root}, context)
        self.assertEqual(result.metadata["code"], "cancelled")

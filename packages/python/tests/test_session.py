from __future__ import annotations

import asyncio
import base64
import fcntl
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from typing import Any

from openai.types.responses import ResponseApplyPatchToolCall
from pinfold import (
    CancelToken,
    Decision,
    ExecutionContext,
    Question,
    Session,
    ToolResult,
    tool_schemas,
)
from workspace import Workspace

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Calls(Workspace):
    def test_a_tool_use_block_becomes_its_tool_result_block(self) -> None:
        self.write("a.txt", "one\n")
        session = Session(self.root, dialect="editor")
        name = "str_replace_based_edit_tool"
        entry = {"type": "text_editor_20250728", "name": name, "max_characters": 16000}
        self.assertEqual(session.tool_schemas("anthropic"), [entry])
        use = {"type": "tool_use", "id": "1", "name": name, "input": {"command": "view", "path": "a.txt"}}
        text = "Here's the result of running `cat -n` on a.txt:\n     1\tone\n"
        expected = {
            "type": "tool_result",
            "tool_use_id": "1",
            "content": [{"type": "text", "text": text}],
            "is_error": False,
        }
        self.assertEqual(session.tool_result(use), expected)
        self.assertEqual(asyncio.run(session.execute_tool_use(use)), expected)
        use = {"type": "tool_use", "id": "2", "name": name, "input": {"command": "view", "path": "b.txt"}}
        failed = session.tool_result(use)
        self.assertTrue(failed["is_error"])
        self.assertIn("The path b.txt does not exist. ", failed["content"][0]["text"])

    def test_an_operation_of_openais_hosted_apply_patch_becomes_its_output(self) -> None:
        path = self.write("a.txt", "one\ntwo\n")
        session = Session(self.root)
        create = {"type": "create_file", "path": "b.txt", "diff": "+new"}
        item = {"type": "apply_patch_call", "id": "1", "call_id": "2", "status": "completed", "operation": create}
        created = {"status": "completed", "output": "Success. Updated the following files:\nA b.txt\n"}
        self.assertEqual(session.patch_result(item), created)
        self.assertEqual(pathlib.Path(self.path("b.txt")).read_text(), "new\n")
        update = {"type": "update_file", "path": "a.txt", "diff": "@@ one\n-two\n+2"}
        item = {**item, "operation": update}
        theirs = ResponseApplyPatchToolCall.model_validate(item)
        for call in (theirs, theirs.operation):
            pathlib.Path(path).write_text("one\ntwo\n")
            self.assertEqual(session.patch_result(call)["status"], "completed")
            self.assertEqual(pathlib.Path(path).read_text(), "one\n2\n")
        delete = {"type": "delete_file", "path": "b.txt"}
        self.assertEqual(asyncio.run(session.execute_patch_call(delete))["status"], "completed")
        self.assertFalse(os.path.exists(self.path("b.txt")))
        for wrong, output in [
            (update, "Failed to find expected lines in a.txt:\ntwo"),
            ({**create, "path": "../c.txt"}, "outside the workspace"),
            ({"type": "rename_file", "path": "a.txt"}, "no operation of apply_patch: .*rename_file"),
            (None, "no operation of apply_patch"),
            ({"type": "delete_file", "path": object()}, "the arguments are not JSON"),
        ]:
            failed = session.patch_result(wrong)
            self.assertEqual(failed["status"], "failed")
            self.assertRegex(failed["output"], output)
        self.assertEqual(pathlib.Path(path).read_text(), "one\n2\n")

    def test_the_memory_tool_keeps_its_files_in_a_directory_of_its_own(self) -> None:
        with self.assertRaisesRegex(ValueError, "needs a directory for its files"):
            Session(self.root, dialect="memory")
        session = Session(self.root, dialect="memory", memory=self.path("memory"))
        self.assertEqual(session.tool_schemas("anthropic"), [{"type": "memory_20250818", "name": "memory"}])
        path = "/memories/notes.md"

        def use(args: dict[str, Any]) -> dict[str, Any]:
            return session.tool_result({"type": "tool_use", "id": "1", "name": "memory", "input": args})

        self.assertFalse(use({"command": "create", "path": path, "file_text": "one\n"})["is_error"])
        with open(self.path("memory/notes.md")) as file:
            self.assertEqual(file.read(), "one\n")
        seen = use({"command": "view", "path": path})["content"][0]["text"]
        self.assertEqual(seen, f"Here's the content of {path} with line numbers:\n     1\tone\n")
        self.assertTrue(use({"command": "view", "path": "/etc/passwd"})["is_error"])

    def test_a_result_is_a_value_whether_the_call_succeeds_or_fails(self) -> None:
        path = self.write("a.txt", "one\ntwo\n")
        session = Session(self.root)
        result = session.call("Read", file_path=path)
        self.assertTrue(result.success)
        self.assertEqual(result.output, "     1\tone\n     2\ttwo\n")
        self.assertEqual(result.short_result, "Read 2 lines")
        self.assertEqual(result.metadata["total_lines"], 2)
        self.assertEqual(result.metadata["file_path"], path)
        missing = session.call("Read", file_path=self.path("b.txt"))
        self.assertFalse(missing.success)
        self.assertEqual(missing.output, "")
        self.assertIn("File not found", missing.error or "")
        self.assertEqual(missing.metadata["code"], "file_not_found")
        self.assertEqual(missing.to_dict()["content"], "")

    def test_arguments_that_are_none_are_refused(self) -> None:
        session = Session(self.root)
        circular: dict[str, Any] = {}
        circular["self"] = circular
        bad: list[dict[str, Any]] = [
            {}, {"file_path": 1}, {"file_path": b"x"}, {"file_path": object()}, circular,
            {"file_path": "\ud800"}, {"file_path": "/x", "limit": float("nan")},
            {"file_path": "/x", "colour": 1},
        ]  # fmt: skip
        for args in bad:
            result = session.run("Read", args)
            self.assertFalse(result.success)
            self.assertEqual(result.metadata["code"], "invalid_argument", result.error)
        self.assertEqual(session.call("Fly").metadata["code"], "unknown_tool")

    def test_arguments_can_be_called_anything(self) -> None:
        self.write("a.txt", "one\nTWO\nthree\n")
        session = Session(pathlib.Path(self.root))
        result = session.call(
            "Grep", pattern="two", path=pathlib.Path(self.root),
            output_mode="content", **{"-i": True, "-A": 1},
        )  # fmt: skip
        self.assertEqual(result.output, f"{self.root}/a.txt:2:TWO\n{self.root}/a.txt-3-three\n")

    def test_what_was_read_is_remembered_by_its_own_session_only(self) -> None:
        path = self.write("a.txt", "one\n")
        ours, theirs = Session(self.root), Session(self.root)
        ours.call("Read", file_path=path)
        refused = theirs.call("Edit", file_path=path, old_string="one", new_string="two")
        self.assertEqual(refused.metadata["code"], "not_read")
        done = ours.call("Edit", file_path=path, old_string="one", new_string="two")
        self.assertTrue(done.success, done.error)
        self.assertEqual(self.read("a.txt"), "two\n")

    def test_images_come_as_data(self) -> None:
        path = self.write("p.png", base64.b64decode(PIXEL))
        result = Session(self.root).call("Read", file_path=path)
        self.assertEqual([(image.data, image.media_type) for image in result.images],
                         [(PIXEL, "image/png")])  # fmt: skip

    def test_tools_that_answer_with_objects_have_them_in_data(self) -> None:
        self.write("a.txt", "ä\n")
        session = Session(self.root, dialect=["dotted", "scoped"])
        result = session.call("file.read", path="a.txt")
        assert result.data is not None
        self.assertEqual(result.data["total_lines"], 1)
        self.assertEqual(json.loads(result.output), result.data)
        missing = session.call("read_file", path="b.txt")
        self.assertEqual(missing.metadata["code"], "FILESYSTEM_ERROR")
        self.assertEqual(missing.data, missing.to_dict())
        self.assertTrue(session.call("file_read", path="a.txt").success)

    def test_options_that_are_wrong_are_named(self) -> None:
        cases: list[tuple[dict[str, Any], str]] = [
            ({"durabilty": "full"}, "no setting `durabilty`; did you mean `durability`?"),
            ({"durability": "most"}, "most"),
            ({"permissions": {"modes": "plan"}}, "did you mean `mode`?"),
            ({"permissions": {"deny": ["Fly(**)"]}}, "Fly"),
            ({"dialect": "old"}, "the dialects are"),
        ]
        for options, named in cases:
            with self.assertRaises(ValueError) as raised:
                Session(self.root, **options)
            self.assertIn(named, str(raised.exception))
        with self.assertRaisesRegex(ValueError, "nowhere"):
            Session(self.path("nowhere"))
        with self.assertRaises(TypeError):
            Session(self.root, can_use_tool="yes")  # type: ignore[arg-type]

    def test_settings_have_the_names_of_the_configuration_file(self) -> None:
        self.write("a.txt", "one\n")
        session = Session(self.root, relative_paths=True, dry_run=True, read_before_write="off")
        result = session.call("Write", file_path="a.txt", content="two\n")
        self.assertTrue(result.output.startswith("[Dry Run] Would"))
        self.assertEqual(self.read("a.txt"), "one\n")
        # A context that does not ask for a dry run takes none back.
        context = ExecutionContext(self.root)
        session.run("Write", {"file_path": "a.txt", "content": "two\n"}, context)
        self.assertEqual(self.read("a.txt"), "one\n")

    def test_a_working_directory_is_where_relative_paths_and_searches_start(self) -> None:
        self.write("top.txt", "here\n")
        inner = self.write("sub/in.txt", "here\n")
        session = Session(self.root, relative_paths=True)
        context = ExecutionContext(self.path("sub"))
        self.assertTrue(session.run("Read", {"file_path": "in.txt"}, context).success)
        found = session.run("Grep", {"pattern": "here"}, context)
        self.assertEqual(found.output.strip(), inner)
        outside = session.run("Read", {"file_path": "x"}, ExecutionContext("/"))
        self.assertEqual(outside.metadata["code"], "invalid_argument")

    def test_schemas_need_no_session(self) -> None:
        self.assertEqual(tool_schemas("openai")[0]["function"]["name"], "Read")
        self.assertEqual(tool_schemas("anthropic", "scoped")[0]["name"], "read_file")
        self.assertEqual(len(tool_schemas("gemini", "all")[0]["functionDeclarations"]), 22)
        self.assertEqual(len(tool_schemas("mcp")), 10)
        with self.assertRaisesRegex(ValueError, "the formats are"):
            tool_schemas("morse")  # type: ignore[arg-type]
        session = Session(self.root)
        self.assertEqual(session.tool_schemas("anthropic"), tool_schemas("anthropic"))
        line = session.format_compact_params("Read", {"file_path": self.path("a"), "offset": 2})
        self.assertEqual(line, "a 2:2000")


class Asking(Workspace):
    def asking(self, can_use_tool: Any = None) -> Session:
        return Session(self.root, can_use_tool=can_use_tool, permissions={"mode": "default"})

    def test_a_yes_is_enough_and_is_asked_for_on_the_calling_thread(self) -> None:
        asked: list[Any] = []

        def decide(tool: str, args: dict[str, Any], question: Question) -> bool:
            asked.append((threading.get_ident(), tool, args, question))
            return True

        result = self.asking(decide).call("Write", file_path=self.path("new"), content="x\n")
        self.assertTrue(result.success, result.error)
        [(thread, tool, args, question)] = asked
        self.assertEqual(thread, threading.get_ident())
        self.assertEqual((tool, args["content"]), ("Write", "x\n"))
        self.assertEqual(question["path"], self.path("new"))
        self.assertIn("+x", question["diff"])

    def decided_by(self, answer: Any) -> ToolResult:
        def decide(tool: str, args: dict[str, Any]) -> Any:
            return answer

        return self.asking(decide).call("Write", file_path=self.path("new"), content="x")

    def test_whatever_is_no_clear_yes_is_a_no(self) -> None:
        answers: list[Any] = [
            False, None, 1, "yes", {}, [], object(), Decision(False),
            Decision(allow="yes"),  # type: ignore[arg-type]
            {"behavior": "allow", "remember": object()},
        ]  # fmt: skip
        circular: dict[str, Any] = {"behavior": "allow"}
        circular["self"] = circular
        answers += [circular, Decision(False, message=ValueError("x"))]  # type: ignore[arg-type]
        self.assertTrue(self.decided_by(True).success)
        os.remove(self.path("new"))
        for answer in answers:
            result = self.decided_by(answer)
            self.assertFalse(result.success, answer)
            self.assertEqual(result.metadata["code"], "permission_denied")
            self.assertFalse(os.path.exists(self.path("new")))

    def test_callbacks_that_raise_are_a_no_with_their_words(self) -> None:
        def broken(tool: str, args: dict[str, Any]) -> bool:
            raise RuntimeError("the dialog is broken")

        async def broken_later(tool: str, args: dict[str, Any]) -> bool:
            raise RuntimeError("the dialog is broken")

        for callback in (broken, broken_later):
            result = self.asking(callback).call("Write", file_path=self.path("new"), content="x")
            self.assertEqual(result.metadata["code"], "permission_denied")
            says = "the user did not answer: the approval callback failed: the dialog is broken"
            self.assertIn(says, result.error or "")
            self.assertFalse(os.path.exists(self.path("new")))

    def test_what_is_decided_about_is_what_is_done(self) -> None:
        class Changing:
            """A path that is another one every time."""

            def __init__(self, *paths: str) -> None:
                self.paths = list(paths)

            def __fspath__(self) -> str:
                return self.paths.pop(0)

        seen: list[str] = []

        def decide(tool: str, args: dict[str, Any]) -> bool:
            seen.append(args["file_path"])
            args["file_path"] = "/elsewhere"
            return True

        path = Changing(self.path("one"), self.path("two"))
        result = self.asking(decide).call("Write", file_path=path, content="x")
        self.assertEqual((seen, os.listdir(self.root)), ([self.path("one")], ["one"]))
        self.assertEqual(result.file_path, self.path("one"))

    def test_who_decides_gets_the_question_if_they_take_it(self) -> None:
        class Policy:
            def __len__(self) -> int:
                return 0

            def __call__(self, tool: str, args: dict[str, Any], *, question: Question) -> bool:
                return question["operation"] == "Read"

        # Whatever it is as a truth value, it is the one that decides.
        context = ExecutionContext(can_use_tool=Policy())  # type: ignore[arg-type]
        session = self.asking(lambda tool, args: args["content"] == "x")
        write = {"file_path": self.path("new"), "content": "x"}
        self.assertFalse(session.run("Write", write, context).success)
        secret = self.write(".env", "KEY=1\n")
        self.assertTrue(session.run("Read", {"file_path": secret}, context).success)
        # A parameter with a default is the callback's own.
        session = self.asking(lambda tool, args, mine=False: not mine)
        self.assertTrue(session.run("Write", write).success)

    def test_what_ends_a_program_also_ends_its_call(self) -> None:
        def interrupted(tool: str, args: dict[str, Any]) -> bool:
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            self.asking(interrupted).call("Write", file_path=self.path("new"), content="x")
        self.assertFalse(os.path.exists(self.path("new")))

    def test_decisions_have_words_and_can_be_remembered(self) -> None:
        session = self.asking(lambda tool, args: Decision(False, "not on a Monday"))
        result = session.call("Write", file_path=self.path("new"), content="x")
        self.assertIn("not on a Monday", result.error or "")
        asked: list[str] = []

        async def once(tool: str, args: dict[str, Any]) -> Decision:
            asked.append(tool)
            return Decision(True, remember=True)

        session = self.asking(once)
        self.assertTrue(session.call("Write", file_path=self.path("new"), content="x").success)
        edited = session.call("Edit", file_path=self.path("new"), old_string="x", new_string="y")
        self.assertTrue(edited.success)
        self.assertEqual(asked, ["Write"])

    def test_the_mode_of_a_call_is_its_own(self) -> None:
        session = self.asking(lambda tool, args: self.fail("nobody was to be asked"))
        write = {"file_path": self.path("new"), "content": "x"}
        plan = session.run("Write", write, ExecutionContext(self.root, permission_mode="plan"))
        self.assertEqual(plan.metadata["code"], "permission_denied")
        unknown = session.run("Write", write, ExecutionContext(self.root, permission_mode="x"))
        self.assertIn("no permission mode `x`", unknown.error or "")
        context = ExecutionContext(self.root, permission_mode="acceptEdits")
        self.assertTrue(session.run("Write", write, context).success)

    def test_a_call_that_is_cancelled_while_somebody_thinks_ends(self) -> None:
        token = CancelToken()

        def decide(tool: str, args: dict[str, Any]) -> bool:
            token.cancel()
            return True

        context = ExecutionContext(self.root, can_use_tool=decide, cancel=token)
        result = self.asking().run(
            "Write", {"file_path": self.path("new"), "content": "x"}, context
        )
        self.assertEqual(result.metadata["code"], "cancelled")
        self.assertFalse(os.path.exists(self.path("new")))
        self.assertTrue(token.is_cancelled())


class Contexts(Workspace):
    def test_a_context_without_a_directory_starts_where_the_session_does(self) -> None:
        self.write("a.txt", "x\n")
        session = Session(self.root, relative_paths=True)
        self.assertTrue(session.run("Read", {"file_path": "a.txt"}, ExecutionContext()).success)

    def test_what_is_wrong_with_a_context_is_said(self) -> None:
        session = Session(self.root)
        wrong: Any = object()
        result = session.run("LS", {"path": self.root}, ExecutionContext(working_dir=wrong))
        self.assertEqual(result.metadata["code"], "invalid_argument")
        result = session.run("LS", {"path": self.root}, ExecutionContext(permission_mode=wrong))
        self.assertIn("no permission mode", result.error or "")
        with self.assertRaisesRegex(TypeError, "CancelToken"):
            session.run("LS", {"path": self.root}, ExecutionContext(cancel=wrong))
        with self.assertRaisesRegex(TypeError, "must be a path"):
            Session(None)  # type: ignore[arg-type]
        with self.assertRaises(ValueError):
            Session("/tmp/\udcff")
        self.assertEqual(session.call("\ud800").metadata["code"], "unknown_tool")

    def test_a_link_that_leads_elsewhere_now_leads_calls_there(self) -> None:
        self.write("v1/a.txt", "one\n")
        self.write("v2/a.txt", "two\n")
        session = Session(self.root, relative_paths=True)
        context = ExecutionContext(self.path("current"))
        for version, line in (("v1", "one"), ("v2", "two")):
            if os.path.lexists(self.path("current")):
                os.remove(self.path("current"))
            os.symlink(version, self.path("current"))
            result = session.run("Read", {"file_path": "a.txt"}, context)
            self.assertIn(line, result.output)

    def test_a_signals_handler_can_cancel(self) -> None:
        token = CancelToken()

        class Handler(dict[Any, Any]):
            """Cancels in the midst of what the token does."""

            def pop(self, *args: Any) -> Any:
                token.cancel()
                return super().pop(*args)

        token._watchers = Handler()
        context = ExecutionContext(cancel=token)
        self.assertTrue(Session(self.root).run("LS", {"path": self.root}, context).success)
        self.assertTrue(token.is_cancelled())


class Processes(Workspace):
    def test_programs_that_await_calls_end_well(self) -> None:
        self.write("a.txt", "one\n")
        endings = {
            "await read()": "",
            "[asyncio.create_task(read()) for _ in range(20)]": "",
            "asyncio.create_task(ask()); await asked.wait()": "",
        }
        program = (
            "import asyncio, sys\n"
            "from pinfold import *\n"
            "session = Session(sys.argv[1], permissions={'mode': 'default'})\n"
            "async def decide(tool, args):\n"
            "    asked.set()\n"
            "    await asyncio.Event().wait()\n"
            "async def read():\n"
            "    await session.execute('Read', {'file_path': sys.argv[1] + '/a.txt'})\n"
            "async def ask():\n"
            "    write = {'file_path': sys.argv[1] + '/new', 'content': 'x'}\n"
            "    await session.execute('Write', write, ExecutionContext(can_use_tool=decide))\n"
            "async def main():\n"
            "    global asked\n"
            "    asked = asyncio.Event()\n"
            "    ENDING\n"
            "asyncio.run(main())\n"
        )
        for ending in endings:
            for _ in range(10):
                with self.python(program.replace("ENDING", ending)) as process:
                    _, errors = process.communicate()
                self.assertEqual((process.returncode, errors), (0, ""), ending)
        self.assertFalse(os.path.exists(self.path("new")))

    # Four threads write, and processes are forked in the midst of that.
    FORKS = (
        "import os, signal, sys, threading\n"
        "from pinfold import Session\n"
        "root = sys.argv[1]\n"
        "session = Session(root, durability='none', deadline_seconds=30)\n"
        "stop = threading.Event()\n"
        "def write(name):\n"
        "    return session.call('Write', file_path=f'{root}/{name}', content=os.urandom(8).hex())\n"
        "def work(name):\n"
        "    while not stop.is_set():\n"
        "        write(name)\n"
        "threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]\n"
        "[thread.start() for thread in threads]\n"
        "children = []\n"
        "for number in range(10):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        CHILD\n"
        "    children.append(child)\n"
        "stop.set()\n"
        "[thread.join() for thread in threads]\n"
    )

    def test_a_forked_process_keeps_nothing_locked(self) -> None:
        program = self.FORKS.replace("CHILD", "signal.pause()") + (
            "print(write('last').success)\n"
            "[os.kill(child, signal.SIGKILL) for child in children]\n"
        )
        with self.python(program) as process:
            self.assertEqual(process.communicate(), ("True\n", ""))

    def python(self, program: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", program, self.root],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def test_control_c_ends_a_call(self) -> None:
        # An approval that never comes, so that the call never ends.
        program = (
            "import signal, sys, threading\n"
            "from pinfold import *\n"
            # The signal may be ignored where the tests run.
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "def decide(tool, args):\n"
            "    print('asked', flush=True)\n"
            "    threading.Event().wait()\n"
            "session = Session(sys.argv[1], can_use_tool=decide, permissions={'mode': 'default'})\n"
            "session.call('Write', file_path=sys.argv[1] + '/new', content='x')\n"
        )
        with self.python(program) as process:
            assert process.stdout is not None and process.stderr is not None
            self.assertEqual(process.stdout.readline(), "asked\n")
            process.send_signal(signal.SIGINT)
            self.assertIn("KeyboardInterrupt", process.stderr.read())
        self.assertFalse(os.path.exists(self.path("new")))

    def test_a_forked_process_has_threads_of_its_own(self) -> None:
        self.write("a.txt", "one\n")
        program = (
            "import os, sys\n"
            "from pinfold import Session\n"
            "session = Session(sys.argv[1])\n"
            "read = lambda: session.call('Read', file_path=sys.argv[1] + '/a.txt').short_result\n"
            "print(read(), flush=True)\n"
            "child = os.fork()\n"
            "if child:\n"
            "    os.waitpid(child, 0)\n"
            "print(read(), flush=True)\n"
        )
        with self.python(program) as process:
            assert process.stdout is not None
            self.assertEqual(process.stdout.read(), "Read 1 line\n" * 3)

    def test_other_threads_run_while_the_engine_works(self) -> None:
        # The call waits for a lock that another thread gives back. Without the interpreter, that thread could not.
        self.write("a.txt", "one\n")
        session = Session(self.root)
        session.call("Read", file_path=self.path("a.txt"))
        directory = os.open(self.root, os.O_RDONLY)
        fcntl.flock(directory, fcntl.LOCK_EX)
        begins = threading.Event()

        def other() -> None:
            begins.wait()
            # Long enough for the call to wait. If it does not yet, the test passes all the same.
            time.sleep(0.2)
            os.close(directory)

        thread = threading.Thread(target=other)
        thread.start()
        begins.set()
        result = session.call("Write", file_path=self.path("a.txt"), content="x")
        thread.join()
        self.assertTrue(result.success, result.error)

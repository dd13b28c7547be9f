"""The tool runners of Anthropic's SDK with Pinfold's tools, and an API that says what the test says."""

from __future__ import annotations

import asyncio
import base64
import json
import pathlib
from typing import Any

import httpx2
from anthropic import Anthropic, AsyncAnthropic
from anthropic.types.beta import BetaMessageParam
from pinfold import ExecutionContext, Session
from pinfold.anthropic import async_runnable_tools, runnable_tools
from workspace import Workspace

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
MESSAGES: list[BetaMessageParam] = [{"role": "user", "content": "go"}]


class Script:
    """A model that makes each call in turn, and keeps the requests."""

    def __init__(self, calls: list[tuple[str, dict[str, Any]]]) -> None:
        self.calls = calls
        self.requests: list[dict[str, Any]] = []

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        number = len(self.requests)
        self.requests.append(json.loads(request.content))
        content: dict[str, Any] = {"type": "text", "text": "done"}
        if number < len(self.calls):
            name, args = self.calls[number]
            content = {"type": "tool_use", "id": f"call_{number}", "name": name, "input": args}
        message = {
            "id": f"message_{number}",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": [content],
            "stop_reason": "tool_use" if number < len(self.calls) else "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        return httpx2.Response(200, json=message)

    async def answer_later(self, request: httpx2.Request) -> httpx2.Response:
        return self.answer(request)

    @property
    def results(self) -> list[dict[str, Any]]:
        return [request["messages"][-1]["content"][0] for request in self.requests[1:]]


class Runners(Workspace):
    def script(self) -> Script:
        self.write("a.txt", "one\n")
        pathlib.Path(self.path("p.png")).write_bytes(base64.b64decode(PIXEL))
        return Script(
            [
                ("read", {"file_path": "a.txt"}),
                ("edit", {"file_path": "a.txt", "old_string": "one", "new_string": "two"}),
                ("read", {"file_path": "p.png"}),
                ("read", {"file_path": "/etc/passwd"}),
                ("read", {"path": "a.txt"}),
            ]
        )

    def check(self, script: Script) -> None:
        declared = [tool["name"] for tool in script.requests[0]["tools"]]
        self.assertEqual(declared, ["read", "write", "edit", "glob", "grep"])
        self.assertEqual(pathlib.Path(self.path("a.txt")).read_text(), "two\n")
        results = script.results
        ids = [result["tool_use_id"] for result in results]
        self.assertEqual(ids, [f"call_{number}" for number in range(len(script.calls))])
        self.assertIn("one", results[0]["content"][0]["text"])
        self.assertEqual(results[2]["content"][-1]["source"]["data"], PIXEL)
        errors = [result.get("is_error", False) for result in results]
        self.assertEqual(errors, [False, False, False, True, True])
        self.assertIn("`/etc/passwd` is outside the workspace", results[3]["content"][0]["text"])
        self.assertIn("file_path", results[4]["content"][0]["text"])

    def test_anthropics_tool_runner_runs_the_tools_of_the_agent_toolset(self) -> None:
        script = self.script()
        http = httpx2.Client(transport=httpx2.MockTransport(script.answer))
        with Anthropic(api_key="none", http_client=http) as client:
            client.beta.messages.tool_runner(
                model="scripted",
                max_tokens=100,
                messages=MESSAGES,
                tools=runnable_tools(Session(self.root, dialect="toolset")),
            ).until_done()
        self.check(script)

    def test_and_so_does_the_asynchronous_one(self) -> None:
        script = self.script()

        async def converse() -> None:
            http = httpx2.AsyncClient(transport=httpx2.MockTransport(script.answer_later))
            async with AsyncAnthropic(api_key="none", http_client=http) as client:
                runner = client.beta.messages.tool_runner(
                    model="scripted",
                    max_tokens=100,
                    messages=MESSAGES,
                    tools=async_runnable_tools(Session(self.root, dialect="toolset")),
                )
                await runner.until_done()

        asyncio.run(converse())
        self.check(script)

    def test_a_tool_with_a_type_of_its_own_is_declared_by_it(self) -> None:
        tools = runnable_tools(Session(self.root, dialect="editor"))
        name = "str_replace_based_edit_tool"
        entry = {"type": "text_editor_20250728", "name": name, "max_characters": 16000}
        self.assertEqual([tool.to_dict() for tool in tools], [entry])

    def test_the_context_holds_for_every_call(self) -> None:
        self.write("sub/a.txt", "one\n")
        context = ExecutionContext(working_dir=self.path("sub"))
        read = runnable_tools(Session(self.root, dialect="toolset"), context)[0]
        self.assertIn("one", str(read.call({"file_path": "a.txt"})))

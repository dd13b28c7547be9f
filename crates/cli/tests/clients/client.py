"""Lists and calls every tool of every dialect with the official Python client: with `initialize`
and stateless, over standard input and output and over HTTP. Called with the path of `pinfold`."""

import asyncio
import base64
import json
import pathlib
import subprocess
import sys
import tempfile

import httpx2
from mcp import Client, StdioServerParameters, types
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

HERE = pathlib.Path(__file__).parent
DIALECTS = json.loads((HERE / "calls.json").read_text())
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
ERAS = {"legacy": "2025-11-25", "2026-07-28": "2026-07-28", "auto": "2026-07-28"}


async def check(server, root, calls, mode):
    async def roots(context):
        return types.ListRootsResult(roots=[types.Root(uri=pathlib.Path(root).as_uri())])

    async with Client(server, mode=mode, list_roots_callback=roots) as client:
        assert client.session.protocol_version == ERAS[mode], client.session.protocol_version
        tools = (await client.list_tools()).tools
        left = {tool.name for tool in tools}
        for name, arguments, expected in calls:
            left.discard(name)
            arguments = json.loads(json.dumps(arguments).replace("$ROOT", root))
            result = await client.call_tool(name, arguments)
            says = f"{name}: {result}"
            assert result.is_error == ("error" in expected), says
            if "structured" in expected:
                for key, value in expected["structured"].items():
                    assert result.structured_content[key] == value, says
            elif "image" in expected:
                image = next(block for block in result.content if block.type == "image")
                assert (image.mime_type, image.data) == (expected["image"], PNG), says
            else:
                text = expected.get("text", expected.get("error")).replace("$ROOT", root)
                assert text in result.content[0].text, says
        assert not left, f"tools that were not called: {left}"
        try:
            await client.call_tool("Nope", {})
            raise AssertionError("a tool that is not there was called")
        except MCPError as error:
            assert "there is no tool" in str(error), error


async def check_asking(server, root, mode, connection):
    """The user at the client is asked before something is changed. Without a connection of its own, a client
    that does not name its session is not offered "allow for this session"."""
    session = {} if connection else {"meta": {"pinfold/session": "s1"}}
    answers = ["allow once", "deny", "allow for this session"]
    offered = []

    async def user(context, params):
        assert "Allow changing" in params.message and "asked.txt" in params.message, params
        offered.append(params.requested_schema["properties"]["answer"]["enum"])
        content = {"answer": answers.pop(0), "reason": "not now"}
        return types.ElicitResult(action="accept", content=content)

    async with Client(server, mode=mode, elicitation_callback=user) as client:

        async def write(content, **options):
            arguments = {"path": "asked.txt", "content": content}
            result = await client.call_tool("file.write", arguments, **options)
            return result.content[0].text

        assert '"success":true' in await write("1")
        assert ("allow for this session" in offered[0]) == connection, offered
        denied = await write("2")
        assert "permission_denied" in denied and "not now" in denied, denied
        assert (pathlib.Path(root) / "asked.txt").read_text() == "1"
        assert '"success":true' in await write("3", **session)
        assert '"success":true' in await write("4", **session)
        assert not answers and len(offered) == 3, offered


def workspace():
    root = tempfile.TemporaryDirectory(prefix="pinfold-client-")
    (pathlib.Path(root.name) / "dot.png").write_bytes(base64.b64decode(PNG))
    return root


async def over_stdio(pinfold):
    for mode in ERAS:
        for dialect, calls in DIALECTS.items():
            with workspace() as root:
                arguments = ["serve", "--no-journal", "--root", root, "--dialect", dialect]
                server = StdioServerParameters(command=pinfold, args=arguments)
                await check(server, root, calls, mode)
                print(f"stdio, {mode}, {dialect}: {len(calls)} calls")
        with workspace() as root:
            arguments = ["serve", "--no-journal", "--root", root, "--dialect", "dotted"]
            server = StdioServerParameters(command=pinfold, args=[*arguments, "--mode", "default"])
            await check_asking(server, root, mode, True)
            print(f"stdio, {mode}, asking: 4 calls")


async def over_http(pinfold):
    calls = [call for calls in DIALECTS.values() for call in calls]
    for mode in ERAS:
        with workspace() as root:
            token = pathlib.Path(root) / ".token"
            arguments = ["serve", "--no-journal", "--root", root, "--dialect", "all"]
            arguments += ["--http", "127.0.0.1:0", "--token-file", token]
            arguments += ["--ask", "Edit(asked.txt)"]
            server = subprocess.Popen([pinfold, *arguments], stderr=subprocess.PIPE, text=True)
            try:
                url = server.stderr.readline().removeprefix("listening on ").strip()
                assert "the token is in" in server.stderr.readline()
                headers = {"Authorization": f"Bearer {token.read_text().strip()}"}
                async with httpx2.AsyncClient(headers=headers) as http:
                    await check(streamable_http_client(url, http_client=http), root, calls, mode)
                async with httpx2.AsyncClient(headers=headers) as http:
                    remote = streamable_http_client(url, http_client=http)
                    await check_asking(remote, root, mode, mode == "legacy")
            finally:
                server.terminate()
                server.wait()
            print(f"http, {mode}, all: {len(calls)} calls")


asyncio.run(over_stdio(sys.argv[1]))
asyncio.run(over_http(sys.argv[1]))

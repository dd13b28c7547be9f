"""AutoGen, which starts a server for each call of a tool unless it is given a session."""

import asyncio

from autogen_core import CancellationToken
from autogen_ext.tools.mcp import McpWorkbench, StdioServerParams, mcp_server_tools
from mcp import ClientSession
from mcp.client.stdio import stdio_client
from mcp.types import ElicitResult

from common import ANSWER, PINFOLD, Report, Workspace, check_calls


async def main():
    report, workspace = Report(), Workspace()
    server = StdioServerParams(
        command=PINFOLD, args=workspace.arguments(), env=workspace.environment
    )
    tools = {tool.name: tool for tool in await mcp_server_tools(server)}

    async def call(name, arguments):
        tool = tools[name]
        try:
            answer = await tool.run_json(arguments, CancellationToken())
            return "".join(block.text for block in answer)
        except Exception as error:
            return str(error)

    await check_calls(report, workspace, tools, call)
    if report.steps["refused edit"] is False:
        # Its tools make an exception without a text of a refusal; its workbench does not.
        async with McpWorkbench(server) as workbench:
            result = await workbench.call_tool("Edit", workspace.edit("  Two", "2"))
        if "     2\t  two" in result.to_text():
            report.cannot("refused edit", "with `McpWorkbench`")
    await check_approval(report)
    report.end()


async def check_approval(report):
    """AutoGen's own sessions have no callback for elicitation, but its tools take a session of the MCP package."""
    asked, workspace = [], Workspace()

    async def on_elicitation(context, params):
        asked.append(params.message)
        return ElicitResult(action="accept", content=ANSWER)

    server = StdioServerParams(
        command=PINFOLD,
        args=workspace.arguments("--mode", "default"),
        env=workspace.environment,
    )
    async with (
        stdio_client(server) as (read, write),
        ClientSession(read, write, elicitation_callback=on_elicitation) as session,
    ):
        await session.initialize()
        tools = {tool.name: tool for tool in await mcp_server_tools(server, session=session)}
        said = await tools["Write"].run_json(workspace.write(), CancellationToken())
    if asked and workspace.is_written():
        report.cannot("approval", "with a `ClientSession` of its own")
    else:
        report.check("approval", False, said)


asyncio.run(main())

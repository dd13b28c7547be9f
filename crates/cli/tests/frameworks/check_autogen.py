"""AutoGen, which starts a server for each call of a tool unless it is given a session."""

import asyncio

from autogen_core import CancellationToken
from autogen_ext.tools.mcp import McpWorkbench, StdioServerParams, mcp_server_tools

from common import PINFOLD, Report, Workspace, check_calls


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
    report.cannot("approval", "not tried: it takes a model")
    report.end()


asyncio.run(main())

"""The client of fastmcp."""

import asyncio

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from common import ANSWER, PINFOLD, Report, Workspace, check_calls


def transport(workspace, *more):
    return StdioTransport(PINFOLD, workspace.arguments(*more), env=workspace.environment)


async def main():
    report, workspace = Report(), Workspace()
    async with Client(transport(workspace)) as client:
        names = [tool.name for tool in await client.list_tools()]

        async def call(name, arguments):
            result = await client.call_tool(name, arguments, raise_on_error=False)
            return "".join(block.text for block in result.content)

        await check_calls(report, workspace, names, call)

    asked, workspace = [], Workspace()

    async def elicit(message, response_type, params, context):
        asked.append(message)
        return ANSWER

    client = Client(transport(workspace, "--mode", "default"), elicitation_handler=elicit)
    async with client:
        result = await client.call_tool("Write", workspace.write(), raise_on_error=False)
    report.check("approval", asked and workspace.is_written(), result)
    report.end()


asyncio.run(main())

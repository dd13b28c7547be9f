"""mcp-use."""

import asyncio

from mcp_use import MCPClient

from common import ANSWER, PINFOLD, Report, Workspace, check_calls


def config(workspace, *more):
    server = {"command": PINFOLD, "args": workspace.arguments(*more), "env": workspace.environment}
    return {"mcpServers": {"pinfold": server}}


async def main():
    report, workspace = Report(), Workspace()
    client = MCPClient(config(workspace))
    session = await client.create_session("pinfold")
    names = [tool.name for tool in await session.list_tools()]

    async def call(name, arguments):
        result = await session.call_tool(name, arguments)
        return "".join(block.text for block in result.content)

    await check_calls(report, workspace, names, call)
    await client.close_all_sessions()

    asked, workspace = [], Workspace()

    async def elicit(context, params):
        from mcp.types import ElicitResult

        asked.append(params.message)
        return ElicitResult(action="accept", content=ANSWER)

    client = MCPClient(config(workspace, "--mode", "default"), elicitation_callback=elicit)
    session = await client.create_session("pinfold")
    result = await session.call_tool("Write", workspace.write())
    report.check("approval", asked and workspace.is_written(), result)
    await client.close_all_sessions()
    report.end()


asyncio.run(main())

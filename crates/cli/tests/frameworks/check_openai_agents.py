"""openai-agents, whose schemas are strict: every argument is required."""

import asyncio

from agents.mcp import MCPServerStdio

from common import PINFOLD, Report, Workspace, check_calls


async def main():
    report, workspace = Report(), Workspace()
    params = {"command": PINFOLD, "args": workspace.arguments(), "env": workspace.environment}
    async with MCPServerStdio(params=params, cache_tools_list=True) as server:
        tools = {tool.name: tool for tool in await server.list_tools()}

        async def call(name, arguments):
            # As a model sends them under a strict schema: what is meant to be absent is empty.
            properties = schema(tools[name])["properties"]
            absent = {name: "" for name in properties if name not in arguments}
            result = await server.call_tool(name, {**absent, **arguments})
            return "".join(block.text for block in result.content)

        await check_calls(report, workspace, tools, call)
    report.cannot("approval", "no callback for elicitation")
    report.end()


def schema(tool):
    return getattr(tool, "inputSchema", None) or tool.input_schema


asyncio.run(main())

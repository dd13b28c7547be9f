"""LlamaIndex, which starts a server for each call of a tool."""

import asyncio

from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

from common import PINFOLD, Report, Workspace, check_calls


async def main():
    report, workspace = Report(), Workspace()
    client = BasicMCPClient(PINFOLD, args=workspace.arguments(), env=workspace.environment)
    tools = {tool.metadata.name: tool for tool in await McpToolSpec(client).to_tool_list_async()}

    async def call(name, arguments):
        try:
            # The raw answer is an object, and its text the model's.
            answer = (await tools[name].acall(**arguments)).raw_output
        except Exception as error:
            return str(error)
        return "".join(block.text for block in answer.content)

    await check_calls(report, workspace, tools, call)
    report.cannot("approval", "no callback for elicitation")
    report.end()


asyncio.run(main())

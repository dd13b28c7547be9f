"""pydantic-ai, with a model that is a script."""

import asyncio

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from common import ANSWER, PINFOLD, Report, Workspace, check_calls


def transport(workspace, *more):
    return StdioTransport(PINFOLD, workspace.arguments(*more), env=workspace.environment)


async def call_once(toolset, tool, arguments):
    """Has a model call a tool, and returns what the model reads then."""
    read = []

    def model(messages, info):
        answers = [part for part in messages[-1].parts if getattr(part, "tool_name", None) == tool]
        if not answers:
            return ModelResponse(parts=[ToolCallPart(tool, arguments)])
        read.extend(str(part.content) for part in answers)
        return ModelResponse(parts=[TextPart("done")])

    await Agent(FunctionModel(model), toolsets=[toolset]).run("go")
    return "".join(read)


async def main():
    report, workspace = Report(), Workspace()
    toolset = MCPToolset(transport(workspace))
    async with toolset:
        names = [tool.name for tool in await toolset.list_tools()]

        async def call(name, arguments):
            return await call_once(toolset, name, arguments)

        await check_calls(report, workspace, names, call)

    asked, workspace = [], Workspace()

    async def elicit(message, response_type, params, context):
        asked.append(message)
        return ANSWER

    toolset = MCPToolset(transport(workspace, "--mode", "default"), elicitation_handler=elicit)
    async with toolset:
        said = await call_once(toolset, "Write", workspace.write())
    report.check("approval", asked and workspace.is_written(), said)
    report.end()


asyncio.run(main())

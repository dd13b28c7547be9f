"""LangChain, which starts a server for each call of a tool."""

import asyncio

from langchain_core.tools import ToolException
from langchain_mcp_adapters.client import MultiServerMCPClient

from common import ANSWER, PINFOLD, Report, Workspace, check_calls


def server(workspace, *more):
    return {
        "transport": "stdio",
        "command": PINFOLD,
        "args": workspace.arguments(*more),
        "env": workspace.environment,
    }


async def main():
    report, workspace = Report(), Workspace()
    client = MultiServerMCPClient({"pinfold": server(workspace)})
    tools = {tool.name: tool for tool in await client.get_tools()}

    async def call(name, arguments):
        try:
            return text(await tools[name].ainvoke(arguments))
        except ToolException as error:
            return str(error)

    await check_calls(report, workspace, tools, call)
    await check_approval(report)
    report.end()


def text(answer):
    if isinstance(answer, str):
        return answer
    return "".join(block.get("text", "") for block in answer)


async def check_approval(report):
    try:
        from langchain_mcp_adapters.callbacks import Callbacks
        from mcp.types import ElicitResult
    except ImportError as error:
        return report.cannot("approval", f"not supported ({error})")
    asked = []

    async def on_elicitation(context, params, *_):
        asked.append(params.message)
        return ElicitResult(action="accept", content=ANSWER)

    try:
        callbacks = Callbacks(on_elicitation=on_elicitation)
    except TypeError:
        return report.cannot("approval", "no callback for elicitation")
    workspace = Workspace()
    client = MultiServerMCPClient(
        {"pinfold": server(workspace, "--mode", "default")}, callbacks=callbacks
    )
    tools = {tool.name: tool for tool in await client.get_tools()}
    said = await tools["Write"].ainvoke(workspace.write())
    report.check("approval", asked and workspace.is_written(), said)


asyncio.run(main())

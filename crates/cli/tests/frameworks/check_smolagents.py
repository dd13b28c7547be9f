"""smolagents, which makes Python identifiers of the names of tools and arguments."""

import asyncio

from mcp import StdioServerParameters
from smolagents import ToolCollection

from common import PINFOLD, Report, Workspace, check_calls


def main():
    report, workspace = Report(), Workspace()
    server = StdioServerParameters(
        command=PINFOLD, args=workspace.arguments("--portable-names"), env=workspace.environment
    )
    with ToolCollection.from_mcp(server, trust_remote_code=True, structured_output=False) as them:
        tools = {tool.name: tool for tool in them.tools}

        async def call(name, arguments):
            try:
                return str(tools[name](**arguments))
            except Exception as error:
                return str(error)

        asyncio.run(check_calls(report, workspace, tools, call))
    report.cannot("approval", "no callback for elicitation")
    report.end()


main()

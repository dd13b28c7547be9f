"""Pinfold's tools with Anthropic's SDK, all calls of a turn at once. With ANTHROPIC_API_KEY and
ANTHROPIC_MODEL set it talks to a real model."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from anthropic import AsyncAnthropic
from pinfold import ExecutionContext, ToolRegistry, register_file_tools
from scripted import anthropic_message, file, root, serve, task


async def main() -> None:
    if "ANTHROPIC_API_KEY" in os.environ:
        client = AsyncAnthropic()
    else:
        client = AsyncAnthropic(base_url=serve(anthropic_message), api_key="none")

    registry = ToolRegistry()
    register_file_tools(registry)
    context = ExecutionContext(working_dir=root)

    async def perform(call: Any) -> dict[str, Any]:
        print(call.name, *call.input)
        result = await registry.execute(call.name, context, **call.input)
        content: list[Any] = [{"type": "text", "text": result.output or result.error or ""}]
        for image in result.images:
            source = {"type": "base64", "media_type": image.media_type, "data": image.data}
            content.append({"type": "image", "source": source})
        return {
            "type": "tool_result",
            "tool_use_id": call.id,
            "is_error": not result.success,
            "content": content,
        }

    messages: list[Any] = [{"role": "user", "content": task}]
    while True:
        tools: Any = registry.get_all_schemas("anthropic")
        message = await client.messages.create(
            model=os.environ.get("ANTHROPIC_MODEL", "scripted"),
            max_tokens=4096,
            messages=messages,
            tools=tools,
        )
        messages.append({"role": "assistant", "content": message.content})
        calls = [block for block in message.content if block.type == "tool_use"]
        if not calls:
            print(*(block.text for block in message.content if block.type == "text"))
            break
        results = await asyncio.gather(*(perform(call) for call in calls))
        messages.append({"role": "user", "content": results})
    print(file.read_text())


asyncio.run(main())

"""Pinfold's tools with OpenAI's SDK. With OPENAI_API_KEY and OPENAI_MODEL set it talks to a real model."""

from __future__ import annotations

import json
import os
from typing import Any

from openai import OpenAI
from pinfold import Session
from scripted import file, root, serve, task


def form(turn: dict[str, Any], number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": turn.get("text")}
    if "tool" in turn:
        function = {"name": turn["tool"], "arguments": json.dumps(turn["args"])}
        message["tool_calls"] = [{"id": f"call-{number}", "type": "function", "function": function}]
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return {
        "id": f"chat-{number}",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [choice],
    }


if "OPENAI_API_KEY" in os.environ:
    client = OpenAI()
else:
    client = OpenAI(base_url=serve(form) + "/v1", api_key="none")

session = Session(root)
messages: list[Any] = [{"role": "user", "content": task}]
while True:
    tools: Any = session.tool_schemas("openai")
    completion = client.chat.completions.create(
        model=os.environ.get("OPENAI_MODEL", "scripted"), messages=messages, tools=tools
    )
    message = completion.choices[0].message
    messages.append(message)
    if not message.tool_calls:
        print(message.content)
        break
    for call in message.tool_calls:
        assert call.type == "function"
        args = json.loads(call.function.arguments)
        print(call.function.name, session.format_compact_params(call.function.name, args))
        result = session.run(call.function.name, args)
        content = result.output if result.success else f"Error: {result.error}"
        messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
print(file.read_text())

"""Anthropic's text editor tool, run by Pinfold. With ANTHROPIC_API_KEY and ANTHROPIC_MODEL set it talks
to a real model."""

from __future__ import annotations

import os
from typing import Any

from anthropic import Anthropic
from pinfold import Session
from scripted import anthropic_message, editor_script, file, root, serve, task

if "ANTHROPIC_API_KEY" in os.environ:
    client = Anthropic()
else:
    client = Anthropic(base_url=serve(anthropic_message, editor_script), api_key="none")

session = Session(root, dialect="editor")
# [{"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 16000}]
tools: Any = session.tool_schemas("anthropic")
messages: list[Any] = [{"role": "user", "content": task}]
while True:
    message = client.messages.create(
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
    results = []
    for call in calls:
        print(call.name, session.format_compact_params(call.name, call.input))
        results.append(session.tool_result(call))
    messages.append({"role": "user", "content": results})
print(file.read_text())

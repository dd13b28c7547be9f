"""A model that follows a script, so that the examples run without a key: it looks for a typo, reads the
file, mends it, and says so. Also the file with the typo."""

from __future__ import annotations

import json
import pathlib
import tempfile
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

root = pathlib.Path(tempfile.mkdtemp(prefix="pinfold-example-")).resolve()
file = root / "greeting.txt"
file.write_text("Helo, world!\n")

task = f"There is a typo in one of my files in {root}. Find it and mend it."

# What the model does, turn by turn: calls of tools, then words.
script: list[dict[str, Any]] = [
    {"tool": "Grep", "args": {"pattern": "Helo"}},
    {"tool": "Read", "args": {"file_path": str(file)}},
    {"tool": "Edit", "args": {"file_path": str(file), "old_string": "Helo", "new_string": "Hello"}},
    {"text": "It said `Helo`; now it says `Hello`."},
]


def _edit(**args: str) -> dict[str, Any]:
    return {"tool": "str_replace_based_edit_tool", "args": args}


# The same with Anthropic's text editor tool.
editor_script: list[dict[str, Any]] = [
    _edit(command="view", path=str(root)),
    _edit(command="view", path=str(file)),
    _edit(command="str_replace", path=str(file), old_str="Helo", new_str="Hello"),
    {"text": "It said `Helo`; now it says `Hello`."},
]


# A turn that the user does not want.
unwanted: list[dict[str, Any]] = [
    {"tool": "Read", "args": {"file_path": str(file)}},
    {
        "tool": "Edit",
        "args": {"file_path": str(file), "old_string": "Helo", "new_string": "Farewell"},
    },
    {"tool": "Move", "args": {"source": str(file), "destination": str(root / "old/greeting.txt")}},
    {"tool": "Write", "args": {"file_path": str(root / "notes.txt"), "content": "one\ntwo\n"}},
]


def anthropic_message(turn: dict[str, Any], number: int) -> dict[str, Any]:
    """A turn as a message of Anthropic's."""
    if "tool" in turn:
        block = {
            "type": "tool_use",
            "id": f"call-{number}",
            "name": turn["tool"],
            "input": turn["args"],
        }
    else:
        block = {"type": "text", "text": turn["text"]}
    return {
        "id": f"message-{number}",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "stop_reason": "tool_use" if "tool" in turn else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
        "content": [block],
    }


def serve(
    form: Callable[[dict[str, Any], int], dict[str, Any]],
    steps: list[dict[str, Any]] = script,
) -> str:
    """Serves a script in a provider's form, for as long as the program runs, and gives its URL."""
    turns = iter(enumerate(steps))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            number, turn = next(turns)
            body = json.dumps(form(turn, number)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"

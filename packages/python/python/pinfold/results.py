"""The result of a call."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict


@dataclass(frozen=True)
class Image:
    """An image in a result."""

    # Base64.
    data: str
    media_type: str


@dataclass
class ToolResult:
    """The result of a call, which succeeded or failed."""

    # Whether the call succeeded.
    success: bool
    # The text for the model; empty on failure.
    output: str = ""
    # The error message for the model, with a hint.
    error: str | None = None
    # Data for programs; `code` is the kind of failure.
    metadata: dict[str, Any] = field(default_factory=dict)
    images: list[Image] = field(default_factory=list)
    # One line for the user.
    short_result: str | None = None
    # The path of the file; also in the metadata.
    file_path: str | None = None
    # The answer of a tool that answers with an object (`dotted`, `scoped`); `output` is its JSON. Of `editor`
    # the result as the Model Context Protocol has it; `output` is its text.
    data: dict[str, Any] | None = None

    @classmethod
    def ok(cls, output: str = "", **metadata: Any) -> ToolResult:
        """A success."""
        file_path = metadata.get("file_path")
        return cls(success=True, output=output, metadata=metadata, file_path=file_path)

    @classmethod
    def fail(cls, error: str, **metadata: Any) -> ToolResult:
        """A failure."""
        file_path = metadata.get("file_path")
        return cls(success=False, error=error, metadata=metadata, file_path=file_path)

    def to_dict(self) -> dict[str, Any]:
        """The result as a plain object for JSON, as the other front ends return it."""
        if self.data is not None:
            return self.data
        metadata = {key: value for key, value in self.metadata.items() if key != "file_path"}
        images = [{"data": image.data, "mediaType": image.media_type} for image in self.images]
        optional = {
            "shortResult": self.short_result,
            "error": self.error,
            "images": images,
            "filePath": self.file_path,
            "metadata": metadata,
        }
        given = {key: value for key, value in optional.items() if value}
        return {"success": self.success, "content": self.output, **given}


class PinfoldError(Exception):
    """The failure of a checkpoint or a rewind. `code` is its kind, as in the metadata of a result."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Conflict:
    """A file that a rewind does not change, because somebody else has changed it since."""

    path: str
    why: str


@dataclass(frozen=True)
class RewoundFile:
    """A path to which a rewind undoes changes."""

    # Its path as it is before the rewind.
    path: str
    # `restored`, `removed`, `created again` or `moved back`.
    what: str
    # The path that it is moved back to.
    back_to: str | None
    # The numbers of added and removed lines, if both versions are text.
    lines_added: int | None
    lines_removed: int | None


@dataclass(frozen=True)
class Rewound:
    """The outcome of a rewind, or of its dry run."""

    # Whether it was made. False for a dry run, and if there are conflicts that were not to be left out.
    done: bool
    dry_run: bool
    # The id of the rewind itself, which `pinfold undo` undoes.
    id: str | None
    # How many changes are undone.
    changes: int
    files: list[RewoundFile]
    conflicts: list[Conflict]


def rewound(data: dict[str, Any]) -> Rewound:
    """The object that the native part returns."""
    files = [RewoundFile(**file) for file in data["files"]]
    conflicts = [Conflict(**conflict) for conflict in data["conflicts"]]
    return Rewound(**{**data, "files": files, "conflicts": conflicts})


def tool_result_block(tool_use_id: str, result: ToolResult) -> dict[str, Any]:
    """A result as the `tool_result` block of Anthropic's messages."""
    return {
        "type": "tool_result",
        "tool_use_id": tool_use_id,
        "content": content_blocks(result),
        "is_error": not result.success,
    }


def content_blocks(result: ToolResult) -> list[dict[str, Any]]:
    """The part of a result for the model, as blocks of Anthropic's messages."""
    text = result.output if result.success else result.error or ""
    # The API refuses a block of text without text.
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    for image in result.images:
        source = {"type": "base64", "media_type": image.media_type, "data": image.data}
        content.append({"type": "image", "source": source})
    return content


class PatchResult(TypedDict):
    """The fields of the item `apply_patch_call_output`, besides `type` and `call_id`."""

    status: Literal["completed", "failed"]
    output: str


def patch_result(result: ToolResult) -> PatchResult:
    """A result of `apply_patch` as OpenAI's hosted tool has it."""
    if result.success:
        return {"status": "completed", "output": result.output}
    return {"status": "failed", "output": result.error or ""}


def parse_result(text: str) -> ToolResult:
    """Parses the JSON text that the native part returns."""
    answer = json.loads(text)
    data = answer.get("data")
    output = answer.get("content")
    if output is None:
        written = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        output = written if answer["success"] else ""
    metadata = answer.get("metadata", {})
    file_path = answer.get("filePath")
    if file_path is not None:
        metadata["file_path"] = file_path
    return ToolResult(
        success=answer["success"],
        output=output,
        error=answer.get("error"),
        metadata=metadata,
        images=[Image(image["data"], image["mediaType"]) for image in answer.get("images", [])],
        short_result=answer.get("shortResult"),
        file_path=file_path,
        data=data,
    )

"""What comes of a call."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Image:
    """A picture in a result."""

    # The picture's bytes in base64.
    data: str
    media_type: str


@dataclass
class ToolResult:
    """What comes of a call. A failure is a result too."""

    # Whether the call did what it was asked for.
    success: bool
    # What the model reads; empty on failure.
    output: str = ""
    # What went wrong, and what to try next: for the model.
    error: str | None = None
    # Facts for programs; `code` says what kind of failure it is.
    metadata: dict[str, Any] = field(default_factory=dict)
    images: list[Image] = field(default_factory=list)
    # One line for a person.
    short_result: str | None = None
    # The file that it was about; also in the metadata.
    file_path: str | None = None
    # The answer of a tool that answers with an object (`dotted`, `scoped`); `output` is its JSON.
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
        """The result as Pinfold's tools give it through every other door: a plain object for JSON."""
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


def parse_result(text: str) -> ToolResult:
    """The result that the engine's answer stands for."""
    answer = json.loads(text)
    data = answer.get("data")
    output = answer.get("content", "")
    if data is not None and answer["success"]:
        output = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
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

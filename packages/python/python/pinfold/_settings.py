"""What can be set, by the names of the configuration file.

Made from Pinfold's own schemas by `cargo test -p pinfold-embed --test types`: not for editing.
"""

from __future__ import annotations

from os import PathLike
from typing import Literal, TypedDict


class Permissions(TypedDict, total=False):
    """Who may do what."""

    # What holds where no rule says otherwise.
    # `default`: Files may be read; whatever changes something asks.
    # `secure-file-access`: Changes are allowed, too, but for protected places, which ask.
    # `acceptEdits`: As that, but deleting asks.
    # `plan`: Nothing is changed, whatever the rules say.
    # `dontAsk`: What would ask is refused.
    # `bypassPermissions`: Nothing asks. The fence and deny rules hold.
    # Default: `"secure-file-access"`.
    mode: Literal["default", "secure-file-access", "acceptEdits", "plan", "dontAsk", "bypassPermissions"]

    # What is allowed: each `Tool(pattern)`, `Tool` or `*`.
    # Default: `[]`.
    allow: list[str]

    # What a person is asked about.
    # Default: `[]`.
    ask: list[str]

    # What is refused.
    # Default: `[]`.
    deny: list[str]


class Settings(TypedDict, total=False):
    """Everything that can be set."""

    # Whether tools that want absolute paths take relative ones too, as below the first root.
    # Default: `false`.
    relative_paths: bool

    # Whether changes are only described, and never made.
    # Default: `false`.
    dry_run: bool

    # What is flushed to the disk before a change counts as made.
    # `none`: Flush nothing.
    # `data`: Flush the content before it takes its place.
    # `full`: Flush the directory too.
    # Default: `"data"`.
    durability: Literal["none", "data", "full"]

    # Whether a file must have been read before it is changed; by dialect if not set.
    # `require`: A file that is there must have been read in this session.
    # `off`: Any file can be changed.
    seen: Literal["require", "off"] | None

    # How the text that an edit replaces is looked for.
    # `ladder`: The text as it is, then whole lines without regard to blanks at their ends, then whole lines with another indentation.
    # `exact`: The text as it is, whatever its line ends.
    # Default: `"ladder"`.
    matching: Literal["ladder", "exact"]

    # The largest file that can be edited, in bytes.
    # Default: `104857600`.
    edit_bytes: int

    # Whether changes are journalled, so that they can be taken back; by door if not set: the command line does so, a program that uses the library has to ask for it.
    journal: bool | str | PathLike[str] | None

    # For how many days the journal keeps what it displaced.
    # Default: `30`.
    journal_days: int

    # How many bytes of displaced files the journal keeps.
    # Default: `1073741824`.
    journal_bytes: int

    # What becomes of a change that cannot be journalled.
    # `refuse`: The change is refused.
    # `say`: The change is made, and it is said that it cannot be taken back.
    # Default: `"refuse"`.
    journal_failure: Literal["refuse", "say"]

    # How many bytes of text one answer may hold; by dialect if not set.
    output_bytes: int | None

    # Where a long line is cut, in characters.
    # Default: `2000`.
    max_line_chars: int

    # What becomes of PDF files.
    # `extract`: Their text is read.
    # `reject`: They are refused.
    # Default: `"extract"`.
    documents: Literal["extract", "reject"]

    # Images with a longer side, in pixels, are shrunk; none if not set.
    image_side: int | None

    # Images with more bytes are shrunk; none if not set.
    image_bytes: int | None

    # How many files `Glob` names.
    # Default: `1000`.
    glob_limit: int

    # How long one call may take, in seconds. While a person is asked, the clock stands still.
    # Default: `60`.
    deadline_seconds: int

    # A file that gets a line for every call.
    audit: str | PathLike[str] | None

    # What becomes of changes while that file cannot be written.
    # `refuse`: They are refused.
    # `ignore`: They are made.
    # Default: `"refuse"`.
    audit_failure: Literal["refuse", "ignore"]

    # Who may do what.
    permissions: Permissions

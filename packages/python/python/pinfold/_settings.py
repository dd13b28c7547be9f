"""The settings, by their names in the configuration file.

Generated from Pinfold's schemas by `cargo test -p pinfold-embed --test types`. Do not edit.
"""

from __future__ import annotations

from os import PathLike
from typing import Literal, TypeAlias, TypedDict

# A family of tools; `all` means the first three.
Dialect: TypeAlias = Literal[
    "classic",
    "dotted",
    "scoped",
    "reference",
    "editor",
    "editor-20250124",
    "patch",
    "gemini",
    "memory",
    "toolset",
    "opencode",
    "all",
]


class Permissions(TypedDict, total=False):
    """The permission mode and rules."""

    # Permission mode for operations that no rule matches.
    # `default`: Reads are allowed; changes need approval.
    # `secure-file-access`: Reads and changes are allowed; protected paths need approval.
    # `acceptEdits`: As `secure-file-access`, but deleting needs approval.
    # `plan`: Changes are denied, regardless of the rules.
    # `dontAsk`: Operations that would need approval are denied.
    # `bypassPermissions`: Nothing needs approval. The fence and deny rules hold.
    # Default: `"secure-file-access"`.
    mode: Literal["default", "secure-file-access", "acceptEdits", "plan", "dontAsk", "bypassPermissions"]

    # Rules that allow: each `Operation(pattern)`, `Operation` or `*`.
    # Default: `[]`.
    allow: list[str]

    # Rules that need the user's approval.
    # Default: `[]`.
    ask: list[str]

    # Rules that deny.
    # Default: `[]`.
    deny: list[str]


class Settings(TypedDict, total=False):
    """The settings."""

    # Whether tools that require absolute paths also accept relative ones, which start at the first root.
    # Default: `false`.
    relative_paths: bool

    # Whether tools and arguments have only names that every framework accepts: letters, digits and `_`.
    # Default: `false`.
    portable_names: bool

    # Directories that tools may read but not change, besides the roots and regardless of the rules.
    # Default: `[]`.
    read_roots: list[str]

    # The directory of the dialect `memory`, which is created if it is missing. It has its own fence, and other tools cannot reach it.
    memory: str | PathLike[str] | None

    # Whether changes are described instead of made.
    # Default: `false`.
    dry_run: bool

    # How much is flushed to the disk before a change is complete.
    # `none`: Nothing: the change survives a crash of the process, but perhaps not a loss of power.
    # `data`: The content, before the rename: a loss of power leaves the old or the new content.
    # `full`: The directory too: a loss of power after the call leaves the new content.
    # Default: `"data"`.
    durability: Literal["none", "data", "full"]

    # Whether a file must be read before it is changed; by dialect if not set.
    # `require`: The session must have read the file, and the file must not have changed since.
    # `off`: Any file can be changed.
    read_before_write: Literal["require", "off"] | None

    # How an edit finds the text that it replaces.
    # `lenient`: The exact text, else whole lines ignoring trailing whitespace, else whole lines with another indentation. A replacement of all occurrences replaces exact ones only.
    # `exact`: The exact text, with any line endings.
    # Default: `"lenient"`.
    matching: Literal["lenient", "exact"]

    # The largest file that can be edited, in bytes.
    # Default: `104857600`.
    max_edit_bytes: int

    # Whether changes are journalled, so that they can be undone. If not set, the command line keeps a journal and the library does not.
    journal: bool | str | PathLike[str] | None

    # For how many days the journal keeps backups.
    # Default: `30`.
    journal_days: int

    # How many bytes on disk the journal may take.
    # Default: `1073741824`.
    max_journal_bytes: int

    # Whether a change that cannot be journalled is refused, or made with a warning.
    # `refuse`: The change is refused.
    # `warn`: The change is made, and the result warns that it cannot be undone.
    # Default: `"refuse"`.
    journal_failure: Literal["refuse", "warn"]

    # How many bytes of text one result may have; by dialect if not set.
    max_output_bytes: int | None

    # How many characters of a line are shown.
    # Default: `2000`.
    max_line_chars: int

    # Whether the text of PDF files is extracted, or the files are refused.
    # `extract`: Their text is extracted.
    # `reject`: They are refused.
    # Default: `"extract"`.
    documents: Literal["extract", "reject"]

    # Images with a longer side, in pixels, are scaled down; none if not set.
    max_image_side: int | None

    # Images with more bytes are scaled down; none if not set.
    max_image_bytes: int | None

    # How many files `Glob` lists.
    # Default: `1000`.
    max_glob_files: int

    # Whether searches cache the tree and an index of its content.
    # `auto`: Searches cache the tree and its content, and watch it for changes.
    # `strict`: As `auto`, but every cached file is compared with the disk on each search.
    # `off`: Searches cache nothing.
    # Default: `"auto"`.
    index: Literal["auto", "strict", "off"]

    # Bytes of memory that the index may take, with the cached contents; by default 3 % of the memory, at most 256 MiB.
    max_index_bytes: int | None

    # How much text a search reads after its page is full, to count the other matches, in bytes.
    # Default: `268435456`.
    max_count_bytes: int

    # How long one call may take, in seconds. The time that the user takes to answer an approval request does not count.
    # Default: `60`.
    deadline_seconds: int

    # The audit log: a file that gets a line for every call.
    audit: str | PathLike[str] | None

    # Whether changes are refused while the audit log cannot be written.
    # `refuse`: Changes are refused.
    # `ignore`: Changes are made.
    # Default: `"refuse"`.
    audit_failure: Literal["refuse", "ignore"]

    # The permission mode and rules.
    permissions: Permissions

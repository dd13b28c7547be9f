"""The build backend: builds the command line into the package, then calls maturin."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import maturin
from maturin import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

HOME = pathlib.Path(__file__).resolve().parent.parent


def put_program(*profile: str) -> None:
    """Builds the command line and copies it into the package. A source distribution has no source for it."""
    if not (HOME.parent.parent / "crates" / "cli").is_dir():
        print("pinfold: no source of the command line here; the package will be without it")
        return
    build = ["cargo", "build", "--package", "pinfold-cli", "--locked", *profile]
    build += ["--message-format", "json-render-diagnostics"]
    messages = subprocess.run(build, cwd=HOME, check=True, stdout=subprocess.PIPE).stdout
    lines = (json.loads(line) for line in messages.splitlines() if line.startswith(b"{"))
    built = [line["executable"] for line in lines if line.get("executable")]
    place = HOME / "python" / "pinfold" / "bin" / "pinfold"
    place.parent.mkdir(exist_ok=True)
    shutil.copy(built[-1], place.with_name("new"))
    # Replaced, not overwritten: a server may be running from it.
    os.replace(place.with_name("new"), place)


def put_program_like(config_settings: Any) -> None:
    """Builds the command line with maturin's profile."""
    arguments = " ".join(maturin.get_maturin_pep517_args(config_settings)).replace("=", " ")
    put_program(*([] if "--profile dev" in arguments else ["--release"]))


def build_wheel(directory: str, config_settings: Any = None, metadata: str | None = None) -> str:
    put_program_like(config_settings)
    return str(maturin.build_wheel(directory, config_settings, metadata))


def build_editable(directory: str, config_settings: Any = None, metadata: str | None = None) -> str:
    put_program_like(config_settings)
    return str(maturin.build_editable(directory, config_settings, metadata))


if __name__ == "__main__":
    put_program(*sys.argv[1:])

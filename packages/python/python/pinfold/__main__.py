"""The command line: `pinfold serve`, `pinfold call`, and the rest."""

from __future__ import annotations

import os
import pathlib
import sys


def main() -> int:
    """Executes the binary in the package."""
    return execute("pinfold")


def reference_server() -> int:
    """The same under the name of the server that the dialect `reference` replaces."""
    return execute("mcp-server-filesystem")


def execute(name: str) -> int:
    """Executes the binary under a name, which decides what it does."""
    program = pathlib.Path(__file__).parent / "bin" / "pinfold"
    try:
        os.execv(program, [name, *sys.argv[1:]])
    except OSError as error:
        print(f"{name}: cannot run {program}: {error.strerror}", file=sys.stderr)
        print("install a wheel that has it, or run `cargo install pinfold-cli`", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

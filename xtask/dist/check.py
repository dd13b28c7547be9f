"""Installs everything that `cargo xtask dist` has made, each in a clean directory, and lets it read a file.

What is made for another machine runs under `qemu-user` if it is there; otherwise the check says that it was skipped.
"""

from __future__ import annotations

import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

EXPECTED = "one\ntwo\n"
MACHINES = {"x64": "x86_64", "arm64": "aarch64", "amd64": "x86_64", "x86_64": "x86_64", "aarch64": "aarch64"}
CALL = ["call", "--no-journal", "read_file", '{"path": "a.txt"}']


def machine_of(name: str) -> str:
    """The machine that a file was made for; this one if its name says nothing."""
    found = [machine for word, machine in MACHINES.items() if word in name]
    return found[0] if found else platform.machine()


def run(command: list[str], directory: pathlib.Path, **options: str) -> str:
    environment = {**os.environ, "XDG_CONFIG_HOME": "/nowhere", "XDG_STATE_HOME": "/nowhere", **options}
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"`{' '.join(map(str, command))}` ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def emulator(machine: str) -> list[str] | None:
    """What a program for a machine is run by; `None` if it cannot be run here."""
    if machine == platform.machine():
        return []
    found = shutil.which(f"qemu-{machine}-static") or shutil.which(f"qemu-{machine}")
    return [found] if found else None


def reads(program: list[str], place: pathlib.Path) -> None:
    """The program reads a file of a workspace."""
    answer = json.loads(run([*program, *CALL], place))
    if answer["content"] != EXPECTED:
        sys.exit(f"{program}: {answer}")


def served(program: list[str], place: pathlib.Path) -> None:
    """The program is an MCP server: it answers a client's first request."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "check", "version": "1"}}
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    environment = {**os.environ, "XDG_CONFIG_HOME": "/nowhere", "XDG_STATE_HOME": str(place)}
    done = subprocess.run(program, input=request + "\n", capture_output=True, text=True, env=environment)
    if '"name":"pinfold"' not in done.stdout:
        sys.exit(f"{program}: {done.stdout}{done.stderr}")


def archive(file: pathlib.Path, place: pathlib.Path, runner: list[str]) -> None:
    run(["tar", "xf", str(file), "--strip-components=1"], place)
    reads([*runner, "./pinfold"], place)


def debian(file: pathlib.Path, place: pathlib.Path, runner: list[str]) -> None:
    run(["dpkg-deb", "--extract", str(file), "."], place)
    run(["dpkg-deb", "--info", str(file)], place)
    reads([*runner, "./usr/bin/pinfold"], place)


def bundle(file: pathlib.Path, place: pathlib.Path, runner: list[str]) -> None:
    shutil.unpack_archive(file, place, "zip")
    os.chmod(place / "server" / "pinfold", 0o755)
    start = json.loads((place / "manifest.json").read_text())["server"]["mcp_config"]
    command = [start["command"].replace("${__dirname}", str(place))]
    command += [argument.replace("${user_config.directories}", str(place)) for argument in start["args"]]
    served([*runner, *command], place)


def wheel(file: pathlib.Path, place: pathlib.Path, runner: list[str]) -> None:
    if runner:
        # There is no Python for that machine here: the program in the wheel has to do.
        shutil.unpack_archive(file, place, "zip")
        os.chmod(place / "pinfold/bin/pinfold", 0o755)
        return reads([*runner, "pinfold/bin/pinfold"], place)
    run([sys.executable, "-m", "venv", "venv"], place)
    run(["venv/bin/python", "-m", "pip", "install", "--quiet", "--no-index", str(file)], place)
    reads(["venv/bin/pinfold"], place)
    served(["venv/bin/mcp-server-filesystem", str(place)], place)
    code = "from pinfold import Session; print(Session('.').call('read_file', path='a.txt').success)"
    code = code.replace("Session('.')", "Session('.', dialect='scoped')")
    if run(["venv/bin/python", "-c", code], place) != "True\n":
        sys.exit(f"{file.name}: a call failed")


def npm(file: pathlib.Path, place: pathlib.Path, runner: list[str]) -> None:
    """Installs the package, with the native part of this machine in the same directory."""
    (place / "package.json").write_text("{}")
    native = [str(part) for part in file.parent.glob("pinfold-linux-*.tgz") if machine_of(part.name) == platform.machine()]
    run(["npm", "install", "--no-audit", "--no-fund", "--offline", *native, str(file)], place)
    reads(["node_modules/.bin/pinfold"], place)
    code = "import { Session } from 'pinfold'; const s = new Session({ root: '.', dialect: 'scoped' });"
    code += "console.log((await s.call('read_file', { path: 'a.txt' })).success)"
    if run(["node", "--input-type=module", "-e", code], place) != "true\n":
        sys.exit(f"{file.name}: a call failed")


def npm_server(file: pathlib.Path, place: pathlib.Path, runner: list[str]) -> None:
    """Installs the package with those that it needs, which are in the same directory."""
    (place / "package.json").write_text("{}")
    names = [name for name in file.parent.glob("pinfold-*.tgz") if not name.name.startswith("pinfold-linux")]
    names += [part for part in file.parent.glob("pinfold-linux-*.tgz") if machine_of(part.name) == platform.machine()]
    run(["npm", "install", "--no-audit", "--no-fund", "--offline", *map(str, names)], place)
    served(["node_modules/.bin/mcp-server-filesystem", str(place)], place)


def npm_part(file: pathlib.Path, place: pathlib.Path, runner: list[str]) -> None:
    run(["tar", "xf", str(file), "--strip-components=1"], place)
    reads([*runner, "./pinfold"], place)


def check_of(name: str):  # type: ignore[no-untyped-def]
    checks = {".tar.gz": archive, ".deb": debian, ".mcpb": bundle, ".whl": wheel}
    if name.endswith(".tgz"):
        if name.startswith("pinfold-server-filesystem"):
            return npm_server
        return npm_part if name.startswith("pinfold-linux") else npm
    return next((check for end, check in checks.items() if name.endswith(end)), None)


def main(out: pathlib.Path) -> None:
    run(["sha256sum", "--check", "--strict", "SHA256SUMS"], out)
    checked = skipped = 0
    for file in sorted(out.iterdir()):
        check = check_of(file.name)
        if check is None:
            continue
        runner = emulator(machine_of(file.name))
        if runner is None:
            print(f"SKIPPED: {file.name}: there is no emulator for its machine", file=sys.stderr)
            skipped += 1
            continue
        with tempfile.TemporaryDirectory() as directory:
            place = pathlib.Path(directory).resolve()
            (place / "a.txt").write_text(EXPECTED)
            check(file, place, runner)
        print(f"ok {file.name}")
        checked += 1
    print(f"{checked} passed, 0 failed, {skipped} skipped")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())

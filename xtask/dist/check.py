"""Installs everything that `cargo xtask dist` has made, each in a clean directory, and lets it do its work.

What is made for ARM runs under `PINFOLD_EMULATOR`, with `PINFOLD_ARM_PYTHON` and `PINFOLD_ARM_NODE`. An emulated program
cannot start another, so the scripts of packages that start the program are run on this machine's own packages only.
"""

from __future__ import annotations

import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

EXPECTED = "one\ntwo\n"
MACHINES = {"x64": "x86_64", "arm64": "aarch64", "amd64": "x86_64", "x86_64": "x86_64", "aarch64": "aarch64"}
CALL = ["call", "--no-journal", "read_file", '{"path": "a.txt"}']
NODE_CODE = """
import { Session } from 'pinfold';
const session = new Session({ root: '.', dialect: 'scoped' });
console.log((await session.call('read_file', { path: 'a.txt' })).success);
"""
PYTHON_CODE = """
from pinfold import Session
print(Session('.', dialect='scoped').call('read_file', path='a.txt').success)
"""


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


def emulator(machine: str) -> list[str]:
    """The words before a program for a machine that run it."""
    return [] if machine == platform.machine() else os.environ["PINFOLD_EMULATOR"].split(" ")


def reads(program: list[str], place: pathlib.Path) -> None:
    """The program reads a file of a workspace, and changes it."""
    answer = json.loads(run([*program, *CALL], place))
    if answer["content"] != EXPECTED:
        sys.exit(f"{program}: {answer}")
    run([*program, "call", "--no-journal", "write_file", '{"path": "b.txt", "content": "three\\n"}'], place)
    if (place / "b.txt").read_text() != "three\n":
        sys.exit(f"{program}: nothing was written")


def served(program: list[str], place: pathlib.Path) -> None:
    """The program is an MCP server: it answers a client's first request."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "check", "version": "1"}}
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    environment = {**os.environ, "XDG_CONFIG_HOME": "/nowhere", "XDG_STATE_HOME": str(place)}
    options = {"cwd": place, "env": environment, "capture_output": True, "text": True}
    done = subprocess.run(program, input=request + "\n", **options)  # type: ignore[call-overload]
    if '"name":"pinfold"' not in done.stdout:
        sys.exit(f"{program}: {done.stdout}{done.stderr}")


def static(program: pathlib.Path) -> None:
    """The program needs no shared library, so it runs on every Linux."""
    if "NEEDED" in run(["readelf", "--dynamic", str(program)], program.parent):
        sys.exit(f"{program} is not static")


def loadable(library: pathlib.Path) -> None:
    """The library needs no later glibc than the wheels' names say."""
    versions = re.findall(r"GLIBC_([0-9.]+)", run(["readelf", "--version-info", "--wide", str(library)], library.parent))
    newest = max(([int(part) for part in version.split(".")] for version in versions), default=[])
    if newest > [2, 17]:
        sys.exit(f"{library} needs glibc {newest}")


def archive(file: pathlib.Path, place: pathlib.Path, runner: list[str]) -> None:
    run(["tar", "xf", str(file), "--strip-components=1"], place)
    static(place / "pinfold")
    reads([*runner, "./pinfold"], place)


def debian(file: pathlib.Path, place: pathlib.Path, runner: list[str]) -> None:
    """Installs the package with a database of its own, as `dpkg` does for another system."""
    root = place / "root"
    (root / "var/lib/dpkg").mkdir(parents=True)
    force = ["--force-architecture", "--force-not-root", "--force-script-chrootless"]
    run(["dpkg", *force, f"--root={root}", "--log=/dev/null", "--install", str(file)], place)
    reads([*runner, str(root / "usr/bin/pinfold")], place)


def bundle(file: pathlib.Path, place: pathlib.Path, runner: list[str]) -> None:
    shutil.unpack_archive(file, place, "zip")
    os.chmod(place / "server" / "pinfold", 0o755)
    start = json.loads((place / "manifest.json").read_text())["server"]["mcp_config"]
    command = [start["command"].replace("${__dirname}", str(place))]
    command += [argument.replace("${user_config.directories}", str(place)) for argument in start["args"]]
    served([*runner, *command], place)


def wheel(file: pathlib.Path, place: pathlib.Path, runner: list[str]) -> None:
    if runner:
        # This machine's pip installs for the other one; its scripts would start the program.
        tag = file.stem.split("-")[-1]
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--target", "site", "--platform", tag]
        run([*pip, "--only-binary=:all:", "--python-version", "3.11", str(file)], place)
        loadable(place / "site/pinfold/_native.abi3.so")
        reads([*runner, "site/pinfold/bin/pinfold"], place)
        called = run([*runner, os.environ["PINFOLD_ARM_PYTHON"], "-c", PYTHON_CODE], place, PYTHONPATH="site")
    else:
        run([sys.executable, "-m", "venv", "venv"], place)
        run(["venv/bin/python", "-m", "pip", "install", "--quiet", "--no-index", str(file)], place)
        loadable(next(place.glob("venv/lib/*/site-packages/pinfold/_native.abi3.so")))
        reads(["venv/bin/pinfold"], place)
        served(["venv/bin/mcp-server-filesystem", str(place)], place)
        called = run(["venv/bin/python", "-c", PYTHON_CODE], place)
    if called != "True\n":
        sys.exit(f"{file.name}: a call failed")


def npm_parts(out: pathlib.Path, machine: str) -> list[pathlib.Path]:
    return [part for part in out.glob("pinfold-linux-*.tgz") if machine_of(part.name) == machine]


def npm_install(files: list[pathlib.Path], machine: str, place: pathlib.Path) -> None:
    """Installs packages without any other: `npm` must find in them what it needs, and compiles nothing."""
    (place / "package.json").write_text("{}")
    parts = npm_parts(files[0].parent, machine)
    cpu = {"x86_64": "x64", "aarch64": "arm64"}[machine]
    options = ["--no-audit", "--no-fund", "--offline", f"--cpu={cpu}", "--os=linux"]
    if machine != platform.machine():
        # A package that is named on the command line is refused for another machine, whatever `--cpu` says.
        options += ["--force"]
    run(["npm", "install", *options, *map(str, [*parts, *files])], place)


def npm(file: pathlib.Path, place: pathlib.Path, runner: list[str]) -> None:
    npm_install([file], platform.machine(), place)
    reads(["node_modules/.bin/pinfold"], place)
    # What `npx pinfold` does, once the package is there.
    reads(["npx", "--offline", "--no", "pinfold", "--"], place)
    if run(["node", "--input-type=module", "-e", NODE_CODE], place) != "true\n":
        sys.exit(f"{file.name}: a call failed")


def npm_server(file: pathlib.Path, place: pathlib.Path, runner: list[str]) -> None:
    """Installs the package with those that it needs, which are in the same directory."""
    names = [name for name in file.parent.glob("pinfold-*.tgz") if not name.name.startswith("pinfold-linux")]
    npm_install(names, platform.machine(), place)
    served(["node_modules/.bin/mcp-server-filesystem", str(place)], place)


def npm_part(file: pathlib.Path, place: pathlib.Path, runner: list[str]) -> None:
    """Installs the package that users name, for this part's machine, and uses both files of the part."""
    main = [name for name in file.parent.glob("pinfold-[0-9]*.tgz")]
    npm_install(main, machine_of(file.name), place)
    name = "-".join(file.name.split("-")[:3])
    loadable(place / "node_modules" / name / "pinfold.node")
    reads([*runner, f"node_modules/{name}/pinfold"], place)
    node = os.environ["PINFOLD_ARM_NODE"] if runner else "node"
    if run([*runner, node, "--input-type=module", "-e", NODE_CODE], place) != "true\n":
        sys.exit(f"{file.name}: a call failed")


def check_of(name: str):  # type: ignore[no-untyped-def]
    """The check of a file, if there is one."""
    checks = {".tar.gz": archive, ".deb": debian, ".mcpb": bundle, ".whl": wheel}
    if name.endswith(".tgz"):
        if name.startswith("pinfold-server-filesystem"):
            return npm_server
        return npm_part if name.startswith("pinfold-linux") else npm
    return next((check for end, check in checks.items() if name.endswith(end)), None)


def main(out: pathlib.Path) -> None:
    run(["sha256sum", "--check", "--strict", "SHA256SUMS"], out)
    checked = 0
    for file in sorted(out.iterdir()):
        check = check_of(file.name)
        if check is None:
            continue
        if check in (npm, npm_server) and not npm_parts(out, platform.machine()):
            print(f"skipped {file.name}: there is no part for this machine", flush=True)
            continue
        with tempfile.TemporaryDirectory() as directory:
            place = pathlib.Path(directory).resolve()
            (place / "a.txt").write_text(EXPECTED)
            check(file, place, emulator(machine_of(file.name)))
        print(f"ok {file.name}", flush=True)
        checked += 1
    print(f"{checked} passed, 0 failed")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())

"""Packs what `cargo xtask dist` has built: archives, npm packages, wheels, MCP bundles, Debian packages, sums, an SBOM.

`pack.py PARTS OUT VERSION GLIBC` finds a directory for each platform in PARTS, with `pinfold`, which is static, and
`pinfold.node` and `_native.abi3.so`, which need that version of glibc. What it writes depends on nothing else but the
repository: owners, times and orders are fixed.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tarfile
import zipfile

HOME = pathlib.Path(__file__).resolve().parent.parent.parent
NODE = HOME / "packages" / "node"
PYTHON = HOME / "packages" / "python"
SUMMARY = "File tools for AI agents, fenced to a workspace: read, write, edit, delete, list, find, search"
# 1980-01-01, the first day that a ZIP archive can name.
EPOCH = 315532800

# The names that each registry has for a platform.
PLATFORMS = {
    "linux-x64": {"machine": "x86_64", "cpu": "x64", "deb": "amd64"},
    "linux-arm64": {"machine": "aarch64", "cpu": "arm64", "deb": "arm64"},
}

# A path in an archive, what it contains, and whether it is a program.
Entry = tuple[str, bytes, bool]


def write_tar(out: pathlib.Path | None, entries: list[Entry], directories: bool = False) -> bytes:
    """Writes a compressed tar archive, with entries of its directories if something needs them, and returns its bytes."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=EPOCH) as zipped, tarfile.open(fileobj=zipped, mode="w") as tar:
        above = {str(parent) for name, _, _ in entries for parent in pathlib.PurePath(name).parents if directories}
        for name in sorted(above):
            info = tarfile.TarInfo(name if name == "." else f"./{name}")
            info.type, info.mtime, info.mode = tarfile.DIRTYPE, EPOCH, 0o755
            tar.addfile(info)
        for name, content, is_program in sorted(entries):
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.mode = len(content), EPOCH, 0o755 if is_program else 0o644
            tar.addfile(info, io.BytesIO(content))
    if out:
        out.write_bytes(packed.getvalue())
    return packed.getvalue()


def write_zip(out: pathlib.Path, entries: list[Entry]) -> None:
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content, is_program in sorted(entries):
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.external_attr = (0o100755 if is_program else 0o100644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)


SCRIPTS = b"[console_scripts]\nmcp-server-filesystem = pinfold.__main__:reference_server\npinfold = pinfold.__main__:main\n"


def write_json(value: object) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"


def files_below(directory: pathlib.Path, prefix: str) -> list[Entry]:
    found = [path for path in directory.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return [(prefix + str(path.relative_to(directory)), path.read_bytes(), os.access(path, os.X_OK)) for path in found]


def documents(prefix: str) -> list[Entry]:
    names = ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md"]
    return [(prefix + name, (HOME / name).read_bytes(), False) for name in names]


def generated(program: list[str]) -> dict[str, bytes]:
    """The manual pages and the shell completions, which the program prints itself."""

    def printed(*command: str) -> bytes:
        return subprocess.run([*program, *command], check=True, stdout=-1).stdout

    pages = {"pinfold.1": printed("man"), "pinfold.bash": printed("completions", "bash")}
    pages |= {"_pinfold": printed("completions", "zsh"), "pinfold.fish": printed("completions", "fish")}
    # The page of the program names those of its commands.
    for name in re.findall(rb"pinfold\\-(\w+)\(1\)", pages["pinfold.1"]):
        pages[f"pinfold-{name.decode()}.1"] = printed("man", name.decode())
    return pages


def npm_platform(out: pathlib.Path, parts: pathlib.Path, name: str, version: str) -> None:
    package = f"pinfold-{name}"
    about = {"name": package, "version": version, "description": f"The native part of pinfold for {name}"}
    about |= {"license": "MIT OR Apache-2.0", "os": ["linux"], "cpu": [PLATFORMS[name]["cpu"]]}
    entries: list[Entry] = [("package/package.json", write_json(about), False)]
    entries += [("package/pinfold", (parts / "pinfold").read_bytes(), True)]
    entries += [("package/pinfold.node", (parts / "pinfold.node").read_bytes(), False)]
    write_tar(out / f"{package}-{version}.tgz", entries)


def npm_main(out: pathlib.Path, version: str) -> None:
    """The package that people install. It names the native parts of all platforms, wherever it is made."""
    about = json.loads((NODE / "package.json").read_text())
    for development in ("devDependencies", "overrides", "scripts"):
        del about[development]
    about["files"].remove("native")
    about["version"] = version
    about["optionalDependencies"] = {f"pinfold-{name}": version for name in PLATFORMS}
    entries: list[Entry] = [("package/package.json", write_json(about), False)]
    entries += files_below(NODE / "bin", "package/bin/") + files_below(NODE / "dist", "package/dist/")
    entries += [("package/README.md", (NODE / "README.md").read_bytes(), False)]
    write_tar(out / f"pinfold-{version}.tgz", entries)


def npm_server(out: pathlib.Path, version: str) -> None:
    """The package whose only program is `mcp-server-filesystem`, for `npx` without naming the program."""
    about = {"name": "pinfold-server-filesystem", "version": version, "license": "MIT OR Apache-2.0"}
    about |= {"description": "Pinfold with the tools of the MCP project's filesystem server"}
    about |= {"bin": {"mcp-server-filesystem": "./server.mjs"}, "dependencies": {"pinfold": version}}
    server = b'#!/usr/bin/env node\nimport "pinfold/bin/mcp-server-filesystem.mjs";\n'
    entries: list[Entry] = [("package/package.json", write_json(about), False), ("package/server.mjs", server, True)]
    write_tar(out / f"pinfold-server-filesystem-{version}.tgz", entries)


def wheel(out: pathlib.Path, parts: pathlib.Path, tag: str, version: str) -> None:
    entries = files_below(PYTHON / "python", "")
    entries = [entry for entry in entries if not entry[0].startswith(("pinfold/bin/", "pinfold/_native.abi3"))]
    entries += [("pinfold/bin/pinfold", (parts / "pinfold").read_bytes(), True)]
    entries += [("pinfold/_native.abi3.so", (parts / "_native.abi3.so").read_bytes(), True)]
    about = f"Metadata-Version: 2.4\nName: pinfold\nVersion: {version}\nSummary: {SUMMARY}\n"
    about += "License-Expression: MIT OR Apache-2.0\nRequires-Python: >=3.10\n"
    about += "Description-Content-Type: text/markdown\n\n" + (PYTHON / "README.md").read_text()
    info = f"pinfold-{version}.dist-info/"
    form = f"Wheel-Version: 1.0\nGenerator: pinfold\nRoot-Is-Purelib: false\nTag: cp310-abi3-{tag}\n"
    entries += [(info + "METADATA", about.encode(), False), (info + "WHEEL", form.encode(), False)]
    entries += [(info + "entry_points.txt", SCRIPTS, False)]
    record = ""
    for name, content, _ in sorted(entries):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    entries += [(info + "RECORD", f"{record}{info}RECORD,,\n".encode(), False)]
    write_zip(out / f"pinfold-{version}-cp310-abi3-{tag}.whl", entries)


def bundle(out: pathlib.Path, parts: pathlib.Path, name: str, version: str) -> None:
    """An MCP bundle: a client installs it by opening it, and asks for the directories."""
    directories = {"type": "directory", "title": "Directories", "multiple": True, "required": True}
    directories["description"] = "The directories that the tools may work in"
    run = {"command": "${__dirname}/server/pinfold", "args": ["serve", "${user_config.directories}"]}
    manifest = {
        "manifest_version": "0.3",
        "name": "pinfold",
        "display_name": "Pinfold",
        "version": version,
        "description": SUMMARY,
        "author": {"name": "Pinfold"},
        "license": "MIT OR Apache-2.0",
        "server": {"type": "binary", "entry_point": "server/pinfold", "mcp_config": run},
        "user_config": {"directories": directories},
        "compatibility": {"platforms": ["linux"]},
    }
    entries: list[Entry] = [("manifest.json", write_json(manifest), False)]
    entries += [("server/pinfold", (parts / "pinfold").read_bytes(), True)] + documents("")
    write_zip(out / f"pinfold-{version}-{name}.mcpb", entries)


def deb(out: pathlib.Path, parts: pathlib.Path, name: str, version: str, pages: dict[str, bytes]) -> None:
    program = (parts / "pinfold").read_bytes()
    manuals = [(name, content) for name, content in pages.items() if name.endswith(".1")]
    data: list[Entry] = [
        ("./usr/bin/pinfold", program, True),
        ("./usr/share/bash-completion/completions/pinfold", pages["pinfold.bash"], False),
        ("./usr/share/zsh/vendor-completions/_pinfold", pages["_pinfold"], False),
        ("./usr/share/fish/vendor_completions.d/pinfold.fish", pages["pinfold.fish"], False),
        ("./usr/share/doc/pinfold/copyright", (HOME / "LICENSE-MIT").read_bytes(), False),
    ]
    data += [(f"./usr/share/man/man1/{page}.gz", gzip.compress(text, mtime=EPOCH), False) for page, text in manuals]
    size = sum(len(content) for _, content, _ in data) // 1024
    control = f"Package: pinfold\nVersion: {version}\nArchitecture: {PLATFORMS[name]['deb']}\nInstalled-Size: {size}\n"
    control += "Maintainer: Pinfold <pinfold@localhost>\nSection: utils\nPriority: optional\n"
    control += f"Description: file tools for AI agents\n {SUMMARY}.\n"
    members = [("debian-binary", b"2.0\n"), ("control.tar.gz", write_tar(None, [("./control", control.encode(), False)]))]
    members += [("data.tar.gz", write_tar(None, data, directories=True))]
    packed = b"!<arch>\n"
    for member, content in members:
        packed += f"{member:<16}{EPOCH:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode() + content
        packed += b"\n" * (len(content) % 2)
    (out / f"pinfold_{version}_{PLATFORMS[name]['deb']}.deb").write_bytes(packed)


def sbom(out: pathlib.Path, version: str) -> None:
    """The dependencies of the program, as CycloneDX."""
    tree = ["cargo", "tree", "--package", "pinfold-cli", "--edges", "normal", "--prefix", "none"]
    tree += ["--target", "all", "--format", "{p}\t{l}", "--locked"]
    lines = subprocess.run(tree, cwd=HOME, check=True, stdout=-1, text=True).stdout.splitlines()
    found = {line.replace(" (*)", "") for line in lines}
    components = []
    for crate in sorted(found):
        package, _, licence = crate.partition("\t")
        name, number = package.split(" ")[:2]
        component = {"type": "library", "name": name, "version": number.removeprefix("v")}
        component["purl"] = f"pkg:cargo/{name}@{component['version']}"
        components.append(component | {"licenses": [{"expression": licence.replace("/", " OR ")}]})
    about = {"component": {"type": "application", "name": "pinfold", "version": version}}
    content = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "metadata": about, "components": components}
    (out / f"pinfold-{version}.cdx.json").write_bytes(write_json(content))


def main(parts: pathlib.Path, out: pathlib.Path, version: str, glibc: str) -> None:
    platforms = [name for name in PLATFORMS if (parts / name).is_dir()]
    native = [name for name in platforms if PLATFORMS[name]["machine"] == platform.machine()]
    runner = [] if native else os.environ["PINFOLD_EMULATOR"].split(" ")
    pages = generated([*runner, str(parts / (native or platforms)[0] / "pinfold")])
    for name in platforms:
        place = parts / name
        top = f"pinfold-{version}-{name}/"
        entries: list[Entry] = [(top + "pinfold", (place / "pinfold").read_bytes(), True)] + documents(top)
        entries += [(f"{top}share/{page}", content, False) for page, content in pages.items()]
        write_tar(out / f"pinfold-{version}-{name}.tar.gz", entries)
        bundle(out, place, name, version)
        deb(out, place, name, version, pages)
        wheel(out, place, f"manylinux_{glibc.replace('.', '_')}_{PLATFORMS[name]['machine']}", version)
        npm_platform(out, place, name, version)
    npm_main(out, version)
    npm_server(out, version)
    sbom(out, version)
    sums = ""
    for file in sorted(out.iterdir()):
        if file.is_file() and file.name != "SHA256SUMS":
            sums += f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
    (out / "SHA256SUMS").write_text(sums)
    print(sums, end="")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), *sys.argv[3:])

"""What the checks of all frameworks share: a workspace, the calls, and the report."""

import json
import os
import pathlib
import sys
import tempfile

PINFOLD = sys.argv[1]

# What the user answers to an approval request.
ANSWER = {"answer": "allow once"}


class Workspace:
    """A directory with one file, and a server for it."""

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.directory.name).resolve() / "work"
        self.root.mkdir()
        self.file = self.root / "a.txt"
        self.file.write_text("one\n  two\nthree\n")
        # A few frameworks pass nothing on but what they are given.
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": self.directory.name,
            "XDG_STATE_HOME": f"{self.directory.name}/state",
            "XDG_CONFIG_HOME": f"{self.directory.name}/config",
        }

    def arguments(self, *more):
        return ["serve", "--root", str(self.root), *more]

    def read(self):
        return {"file_path": str(self.file)}

    def write(self):
        return {"file_path": str(self.root / "new.txt"), "content": "new\n"}

    def is_written(self):
        return (self.root / "new.txt").exists()

    def edit(self, old, new):
        return {"file_path": str(self.file), "old_string": old, "new_string": new}


class Report:
    """Which steps worked. A step that fails says why."""

    def __init__(self):
        self.steps = {}

    def check(self, step, works, said=""):
        self.steps[step] = bool(works)
        if not works:
            print(f"{step}: {str(said)[:2000]}", file=sys.stderr)

    def cannot(self, step, why):
        self.steps[step] = why

    def end(self):
        print(json.dumps(self.steps))


async def check_calls(report, workspace, names, call):
    """The steps that are the same everywhere. `call` awaits an answer and returns the text that a model would read."""
    report.check("list", {"Read", "Edit", "Grep"} <= set(names), names)
    said = await call("Read", workspace.read())
    report.check("read", "     1\tone\n     2\t  two\n" in said, said)
    said = await call("Edit", workspace.edit("one", "1"))
    report.check("edit", workspace.file.read_text() == "1\n  two\nthree\n", said)
    # The model has to read the reason and the lines, whether the framework makes an exception of it or not.
    said = await call("Edit", workspace.edit("  Two", "2"))
    report.check("refused edit", "old_string not found" in said and "     2\t  two" in said, said)

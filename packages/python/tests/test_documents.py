"""What the documentation shows is what happens."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from workspace import Workspace

HOME = pathlib.Path(__file__).parent.parent


class Documents(Workspace):
    def run_python(self, *arguments: str) -> str:
        keys = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
        environment = {key: value for key, value in os.environ.items() if key not in keys}
        state = tempfile.TemporaryDirectory(prefix="pinfold-state-")
        self.addCleanup(state.cleanup)
        environment["XDG_STATE_HOME"] = state.name
        command = [sys.executable, *arguments]
        done = subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_the_examples_mend_the_file(self) -> None:
        classic = ["Grep", "Read", "Edit"]
        editor = ["str_replace_based_edit_tool"] * 3
        examples = {
            "openai_loop.py": classic,
            "anthropic_loop.py": classic,
            "anthropic_editor.py": editor,
        }
        for example, tools in examples.items():
            lines = self.run_python(str(HOME / "examples" / example)).split("\n")
            self.assertEqual([line.split()[0] for line in lines[:3]], tools)
            self.assertIn("Hello, world!", lines)

    def test_the_example_rewind_takes_the_turn_back(self) -> None:
        printed = self.run_python(str(HOME / "examples" / "rewind.py"))
        expected = [
            "Read greeting.txt ",
            "Edit greeting.txt ",
            "Move greeting.txt → old/greeting.txt ",
            "Write notes.txt ",
            "moved: True",
            "would be created again greeting.txt +1 -0",
            "would be removed notes.txt +0 -2",
            "would be removed old/greeting.txt +0 -1",
            "True 3",
            "Helo, world!",
        ]
        self.assertEqual(printed.rstrip("\n").split("\n"), expected)

    def test_what_the_readme_shows_works_when_it_is_copied(self) -> None:
        readme = (HOME / "README.md").read_text()
        blocks = re.findall(r"```python\n(.*?)```(?:[^`]*```text\n(.*?)```)?", readme, re.DOTALL)
        self.assertGreaterEqual(len(blocks), 3)
        for code, output in blocks:
            (pathlib.Path(self.root) / "agent.py").write_text(code)
            printed = self.run_python("agent.py")
            if output:
                self.assertEqual(printed.replace(self.root, "/home/me/agent"), output)


if __name__ == "__main__":
    unittest.main()

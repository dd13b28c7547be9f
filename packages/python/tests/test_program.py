"""The command line in the package."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys

from workspace import Workspace

# No settings but those of the test.
ENVIRONMENT = {**os.environ, "XDG_CONFIG_HOME": "/nowhere", "XDG_STATE_HOME": "/nowhere"}

SCRIPT = str(pathlib.Path(sys.executable).parent / "pinfold")


class Program(Workspace):
    def run_program(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=self.root, capture_output=True, text=True, env=ENVIRONMENT)

    def test_it_is_run_by_its_name_and_as_a_module(self) -> None:
        self.write("a.txt", "one\ntwo\n")
        for start in ([SCRIPT], [sys.executable, "-m", "pinfold"]):
            done = self.run_program(*start, "call", "--no-journal", "read_file", '{"path": "a.txt"}')
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["content"], "one\ntwo\n")
            failed = self.run_program(*start, "call", "--no-journal", "read_file", '{"path": "none"}')
            self.assertEqual(failed.returncode, 1)

    def test_a_signal_reaches_it_since_no_python_is_left(self) -> None:
        command = [SCRIPT, "serve", "--no-journal", "--root", self.root]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=ENVIRONMENT) as server:
            assert server.stdin is not None and server.stdout is not None
            hello = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            }
            request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
            server.stdin.write(json.dumps(request).encode() + b"\n")
            server.stdin.flush()
            self.assertIn(b'"name":"pinfold"', server.stdout.readline())
            self.assertEqual(os.path.basename(os.readlink(f"/proc/{server.pid}/exe")), "pinfold")
            server.send_signal(signal.SIGTERM)
            self.assertEqual(server.wait(), 0)

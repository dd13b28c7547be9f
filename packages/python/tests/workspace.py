"""A workspace of its own for each test."""

from __future__ import annotations

import os
import tempfile
import unittest


class Workspace(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory(prefix="pinfold-python-")
        self.addCleanup(place.cleanup)
        self.root = os.path.realpath(place.name)

    def path(self, name: str) -> str:
        return os.path.join(self.root, name)

    def write(self, name: str, content: str | bytes) -> str:
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return path

    def read(self, name: str) -> str:
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()


class AsyncWorkspace(Workspace, unittest.IsolatedAsyncioTestCase):
    pass

"""Checkpoints and rewind."""

from __future__ import annotations

import asyncio
import os
import tempfile
import unittest
from typing import Any

from pinfold import Conflict, ExecutionContext, PinfoldError, Question, Rewound, RewoundFile, Session
from workspace import Workspace


class Rewinds(Workspace):
    def setUp(self) -> None:
        super().setUp()
        place = tempfile.TemporaryDirectory(prefix="pinfold-journal-")
        self.addCleanup(place.cleanup)
        self.journal = place.name

    def session(self, **more: Any) -> Session:
        return Session(self.root, dialect="dotted", journal=self.journal, **more)

    def there(self, name: str) -> bool:
        return os.path.exists(self.path(name))

    def test_a_turn_is_taken_back_whatever_was_changed_in_it(self) -> None:
        path = self.write("a.txt", "one\n")
        self.write("b.bin", b"\x00\x01\xff")
        self.write("dir/d.txt", "four\n")
        session = self.session()
        session.checkpoint("start")
        patch = [{"find": "one", "replace": "two"}]
        self.assertTrue(session.call("file.patch", path="a.txt", patches=patch).success)
        self.assertTrue(session.call("file.delete", path="b.bin").success)
        self.assertTrue(session.call("file.move", source="dir", destination="moved").success)
        self.assertTrue(session.call("file.write", path="new/n.txt", content="new\n").success)
        preview = session.rewind("start", dry_run=True)
        self.assertEqual((preview.done, preview.dry_run, preview.changes), (False, True, 4))
        self.assertIn(RewoundFile(path, "restored", None, 1, 1), preview.files)
        self.assertIn(self.path("dir"), [file.back_to for file in preview.files])
        also = session.rewind("start", context=ExecutionContext(dry_run=True))
        self.assertEqual(also, preview)
        self.assertFalse(self.there("b.bin"))
        done = session.rewind("start")
        self.assertTrue(done.done)
        self.assertEqual(self.read("a.txt"), "one\n")
        with open(self.path("b.bin"), "rb") as file:
            self.assertEqual(file.read(), b"\x00\x01\xff")
        self.assertTrue(self.there("dir/d.txt"))
        self.assertFalse(self.there("new"))

    def test_what_somebody_else_changed_is_named_and_then_nothing_is_done(self) -> None:
        path = self.write("a.txt", "one\n")
        session = self.session()
        checkpoint = session.checkpoint()
        session.call("file.write", path="a.txt", content="two\n")
        session.call("file.write", path="b.txt", content="two\n")
        self.write("a.txt", "theirs\n")
        refused = session.rewind(checkpoint)
        self.assertFalse(refused.done)
        self.assertEqual(refused.conflicts, [Conflict(path, "its content has changed since")])
        self.assertTrue(self.there("b.txt"))

        async def rest() -> Rewound:
            return await session.execute_rewind(checkpoint, leave_out_conflicts=True)

        self.assertTrue(asyncio.run(rest()).done)
        self.assertFalse(self.there("b.txt"))
        self.assertEqual(self.read("a.txt"), "theirs\n")

    def test_only_the_sessions_own_changes_are_taken_back_unless_told_otherwise(self) -> None:
        mine, theirs = self.session(), self.session()
        checkpoint = mine.checkpoint()
        mine.call("file.write", path="mine.txt", content="")
        theirs.call("file.write", path="theirs.txt", content="")
        mine.rewind(checkpoint)
        self.assertEqual((self.there("mine.txt"), self.there("theirs.txt")), (False, True))
        mine.rewind(checkpoint, everybody=True)
        self.assertFalse(self.there("theirs.txt"))

    def test_a_rewind_that_cannot_be_planned_raises_and_no_model_can_name_it(self) -> None:
        session = self.session()
        with self.assertRaisesRegex(PinfoldError, "none"):
            session.rewind("none")
        with self.assertRaisesRegex(PinfoldError, "there is no journal"):
            Session(self.root).checkpoint()
        with self.assertRaises(PinfoldError) as raised:
            session.checkpoint("x" * 201)
        self.assertEqual(raised.exception.code, "invalid_argument")
        for name in ("rewind", "checkpoint"):
            result = session.call(name, to="none")
            self.assertEqual(result.metadata["code"], "unknown_tool")

    def test_the_user_is_asked_once_about_all_that_is_taken_back(self) -> None:
        self.write("a.txt", "one\n")
        asked: list[str] = []

        def decide(tool: str, args: dict[str, object], question: Question) -> bool:
            asked.append(f"{tool} {question['diff']}")
            return tool != "rewind"

        session = self.session(permissions={"mode": "default"}, can_use_tool=decide)
        session.checkpoint("start")
        session.call("file.write", path="a.txt", content="two\n")
        session.call("file.write", path="b.txt", content="new\n")
        asked.clear()
        with self.assertRaises(PinfoldError) as raised:
            session.rewind("start")
        self.assertEqual(raised.exception.code, "permission_denied")
        self.assertEqual(len(asked), 1)
        self.assertIn("+one", asked[0])
        self.assertIn("b.txt: deletes a file of 4 bytes", asked[0])
        self.assertEqual(self.read("a.txt"), "two\n")


if __name__ == "__main__":
    unittest.main()

"""Undoes what an agent did in a turn that the user does not want. The model follows a script, so this runs
without a key."""

from __future__ import annotations

import os

from pinfold import Session
from scripted import file, root, unwanted

# The journal has what each change displaced. Without a directory, `True` keeps it in the user's state directory.
session = Session(root, journal=f"{root}-journal")

checkpoint = session.checkpoint("turn 1")
for call in unwanted:
    result = session.run(call["tool"], call["args"])
    print(call["tool"], session.format_compact_params(call["tool"], call["args"]), result.error or "")
print("moved:", not file.exists())

preview = session.rewind(checkpoint, dry_run=True)
for one in preview.files:
    lines = "" if one.lines_added is None else f"+{one.lines_added} -{one.lines_removed}"
    print("would be", one.what, os.path.relpath(one.path, root), lines)
rewound = session.rewind(checkpoint)
print(rewound.done, rewound.changes)
print(file.read_text())

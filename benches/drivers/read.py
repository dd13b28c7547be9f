"""Reads a file as often as each line of input says, in the way that the second argument names."""

import asyncio
import os
import sys

from pinfold import Session

file, way = sys.argv[1:]
session = Session(os.path.dirname(file))


def call(times: int) -> None:
    for _ in range(times):
        assert session.call("Read", file_path=file).success


async def execute(times: int) -> None:
    for _ in range(times):
        assert (await session.execute("Read", {"file_path": file})).success


def plain(times: int) -> None:
    for _ in range(times):
        with open(file, encoding="utf-8") as stream:
            assert stream.read()


async def main() -> None:
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        await execute(int(line))
        print("done", flush=True)


if way == "execute":
    asyncio.run(main())
else:
    for line in sys.stdin:
        {"call": call, "plain": plain}[way](int(line))
        print("done", flush=True)

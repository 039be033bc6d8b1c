"""Output that nobody reads stays in the machine: the command waits, and this process grows no further."""

from __future__ import annotations

import asyncio
import gc
import re
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import PATIENCE, gone

import holt

PIECE = 65_536
# Counts in a file the pieces that it could write.
ENDLESS = (
    f"n=0; while head -c {PIECE} /dev/zero; do n=$((n + 1)); echo $n > $1.new; mv $1.new $1; done; : endless-{{mark}}"
)
MOST_ON_ITS_WAY = 8 << 20
MOST_GROWTH = 8 << 20


def own_memory() -> int:
    """Bytes of this process that are no file's."""
    gc.collect()
    found = re.search(r"^RssAnon:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found
    return int(found[1]) << 10


def written_until_it_waits(machine: holt.Machine, counter: str) -> int:
    """The bytes that the command has written when its count stands still."""
    seen: deque[int] = deque(maxlen=5)
    end = time.monotonic() + 2 * PATIENCE
    while len(seen) < 5 or len(set(seen)) > 1 or seen[-1] == 0:
        assert time.monotonic() < end, f"a command that nobody reads went on writing: {list(seen)} pieces"
        time.sleep(0.2)
        seen.append(int(machine.exec(["cat", counter]).text or 0) if machine.exists(counter) else 0)
    return seen[-1] * PIECE


def with_a_stream(machine: holt.Machine, argv: list[str], measure: Callable[[], None]) -> None:
    with machine.exec_stream(argv) as stream:
        assert stream.next(timeout=PATIENCE)
        measure()


def with_an_async_stream(machine: holt.Machine, argv: list[str], measure: Callable[[], None]) -> None:
    async def main() -> None:
        async with holt.AsyncMachine(machine).exec_stream(argv) as stream:
            assert await stream.next(timeout=PATIENCE)
            await asyncio.to_thread(measure)

    asyncio.run(main())


@pytest.mark.parametrize("use", [with_a_stream, with_an_async_stream])
def test_output_that_nobody_reads_fills_no_memory(
    machine: holt.Machine, folder: str, use: Callable[[holt.Machine, list[str], Callable[[], None]], None]
) -> None:
    counter = f"{folder}/pieces"
    mark = use.__name__

    def measure() -> None:
        written = written_until_it_waits(machine, counter)
        grown = own_memory() - before
        assert written <= MOST_ON_ITS_WAY and grown < MOST_GROWTH, f"{written} bytes on their way, {grown} in memory"

    before = own_memory()
    use(machine, ["sh", "-c", ENDLESS.format(mark=mark), "sh", counter], measure)
    assert gone(machine, f"endless-{mark}")

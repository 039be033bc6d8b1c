"""What of a machine changes behind its creation."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import holt


def test_a_changed_environment_counts_from_the_next_start_on(own: holt.Machine) -> None:
    show = 'echo "$FIRST-$SECOND-$THIRD"'
    own.update(env={"FIRST": "one", "SECOND": "two", "THIRD": "three"})
    assert own.exec(show, shell=True).text == "--\n"
    own.update(env={"SECOND": "2", "THIRD": None})
    own.stop()
    own.start()
    assert own.exec(show, shell=True).text == "one-2-\n"
    assert sorted(own.info().env_names) == ["FIRST", "SECOND"]


def test_an_ephemeral_machine_has_no_next_start_to_change(machine: holt.Machine) -> None:
    with pytest.raises(holt.InvalidConfigError, match="no next start"):
        machine.update(env={"FIRST": "one"})
    assert machine.info().env_names == ("FROM_MACHINE",)


def test_an_event_loop_changes_an_environment_too(home: Path) -> None:
    async def main() -> None:
        made = await holt.AsyncMachine.define(env={"FIRST": "one", "SECOND": "two"})
        try:
            await made.update(env={"SECOND": None, "THIRD": "3"})
            assert (await made.info()).env_names == ("FIRST", "THIRD")
        finally:
            await made.remove()

    asyncio.run(main())

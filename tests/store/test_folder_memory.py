"""What a project's folder remembers of its state (docs/state.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncengine.state.folder_memory import FolderMemory
from syncengine.state.holder import Holder
from syncengine.state.store import open_state


@pytest.mark.parametrize("damaged", [b"", b'{"number": "\xff"}', b'{"odd": ' + b"[" * 100_000])
def test_a_damaged_memory_is_none(damaged: bytes, tmp_path: Path) -> None:
    """A machine that died, or a full disk, may have left it so."""
    (tmp_path / "seen.json").write_bytes(damaged)
    assert FolderMemory(tmp_path / "seen.json", "state").last() is None


def test_a_plan_that_ends_after_an_apply_leaves_the_later_mark(url: str, tmp_path: Path) -> None:
    """Otherwise nobody would notice that the state is set back to before the apply."""
    memory = FolderMemory(tmp_path / "seen.json", "state")

    def write(team: str) -> None:
        with open_state(url, write=True, memory=memory) as state, state.lock(HOLDER, wait=5, request_timeout=0):
            state.set_facts(team=team)

    write("one")
    with open_state(url, write=False) as state:
        as_planned = state.marks(0)
    write("two")
    last = memory.last()
    assert last is not None
    assert last.number > as_planned.last.number
    memory.remember(as_planned)
    assert memory.last() == last


HOLDER = Holder.here("test", {})

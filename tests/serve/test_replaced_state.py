"""When the state is removed or replaced under `serve`, it exits with 1 and delivers nothing that it cannot record."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.program import tag

from .world import World


def _remove_all(state: Path) -> None:
    shutil.rmtree(state.parent)


def _put_a_copy_in_its_place(state: Path) -> None:
    shutil.copy(state, state.with_name("copy"))
    state.with_name("copy").replace(state)


@pytest.mark.parametrize("strike", [_remove_all, _put_a_copy_in_its_place])
def test_an_inbox_that_is_replaced_ends_the_process(estate: World, strike: Callable[[Path], None]) -> None:
    """The group is neither delivered nor acknowledged, so that the service offers it to the next process."""
    served = estate.serve_ready()
    strike(estate.project.folder / ".syncengine" / "state.db")
    estate.post("g1")
    assert served.ends() == 1
    assert "was removed, replaced or set back" in served.log.read_text(encoding="utf-8")
    assert estate.ledger() == []
    assert estate.states()["g1"] != "SUCCESS"


@pytest.mark.parametrize("strike", [_remove_all, _put_a_copy_in_its_place])
def test_a_state_that_is_replaced_in_a_round_ends_the_process(estate: World, strike: Callable[[Path], None]) -> None:
    """The round does not complete, and no further round starts with the replaced state."""
    estate.project.settings(f"serve: {{every: 1s, listen: '127.0.0.1:{estate.port}'}}")
    estate.project.wants(tags=[tag("A")])
    served = estate.serve()
    served.says("reconciled")
    estate.service.fault("upsertTags", delay=2)
    estate.project.wants(tags=[tag("A"), tag("B")])
    estate.service.wait_for("upsertTags", 2)
    strike(estate.project.folder / ".syncengine" / "state.db")
    assert served.ends() == 1
    assert "was removed, replaced or set back" in served.log.read_text(encoding="utf-8")
    assert estate.told("upsertTags") == 2

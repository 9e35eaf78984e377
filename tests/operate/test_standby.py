"""`serve` on another machine takes over, however the first one is lost, and nothing is delivered twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from .standby import LOSSES, pair, taken_over

pytestmark = pytest.mark.slow

LEASE_SECONDS = 4.0


@pytest.mark.parametrize("loss", LOSSES)
def test_a_standby_on_another_machine_takes_over(loss: str, tmp_path: Path) -> None:
    """The standby leads once the lease has ended; a first machine that returns starts no delivery and stands by."""
    with pair(tmp_path, LEASE_SECONDS) as made:
        assert taken_over(made, loss)["broken"] == []

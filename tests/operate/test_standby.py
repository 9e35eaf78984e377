"""A `serve` on another machine takes over, whatever becomes of the first one, and nothing is delivered twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from .standby import LOSSES, pair, taken_over

LEASE_SECONDS = 4.0


@pytest.mark.parametrize("loss", LOSSES)
def test_a_standby_on_another_machine_takes_over(loss: str, tmp_path: Path) -> None:
    """Once the lease has ended; what comes back afterwards begins nothing more, and stands by."""
    with pair(tmp_path, LEASE_SECONDS) as made:
        assert taken_over(made, loss)["broken"] == []

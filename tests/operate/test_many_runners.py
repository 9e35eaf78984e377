"""Machines that plan, apply, take over and are killed at any time, on one state in PostgreSQL.

This runs few of them for a short time; `python -m tests.operate.many_runners` runs ten for five minutes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .many_runners import LEASE_SECONDS, backwards, converged, estate, turmoil

pytestmark = pytest.mark.slow


def test_nothing_is_lost_nor_undone_nor_waited_for_in_silence(tmp_path: Path) -> None:
    """Afterwards, one plain apply makes the service match the manifests."""
    with estate(tmp_path, LEASE_SECONDS) as made:
        turmoil(made, runners=4, minutes=0.2, restarts=1)
        assert converged(made) == []
        assert made.broken == []
        assert backwards(made.service.control.get("/requests").json()["requests"]) == []

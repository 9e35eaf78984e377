"""Machines that plan, apply, deliver, take over and are killed at any time, on one state in PostgreSQL.

This runs few of them for a short time; `python -m tests.operate.many_runners` runs ten for five minutes.
"""

from pathlib import Path

import pytest

from .many_runners import LEASE_SECONDS, estate, turmoil, wrong
from .standby import LOSSES, pair, taken_over

pytestmark = pytest.mark.slow


def test_nothing_is_lost_nor_undone_nor_waited_for_in_silence(tmp_path: Path) -> None:
    with estate(tmp_path, LEASE_SECONDS) as made:
        turmoil(made, runners=4, minutes=0.2, restarts=1)
        assert wrong(made) == []


@pytest.mark.parametrize("loss", LOSSES)
def test_a_standby_on_another_machine_takes_over(loss: str, tmp_path: Path) -> None:
    """The standby leads once the lease has ended; a first machine that returns starts no delivery and stands by."""
    with pair(tmp_path, lease=4.0) as made:
        assert taken_over(made, loss)["broken"] == []

"""The list of a state's rows."""

from __future__ import annotations

import time

from syncengine.render.state import rows_text
from syncengine.resource import Body, Key, Recorded


def test_a_long_list_takes_as_long_as_its_lines() -> None:
    """20,000 rows are rendered in seconds: the work for a row does not grow with their number."""
    rows = [Recorded(Key.parse(f"tag/MAT-{number:05}"), Body({}, (), {})) for number in range(20_000)]
    began = time.process_time()
    text = rows_text(rows, 120)
    assert time.process_time() - began < 5
    assert text.count("\n") == 20_000

"""Modules with tests that take more than a few seconds: real processes, waits, a browser, whole models.

Measured with `--durations=0`; `pytest -m "not slow"` leaves them out while one edits, and does not read them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

WITHOUT = "not slow"

SLOW: dict[str, str] = {
    "applying": "batches category_ids crashes instants landing missing reviewed_crashes stages stopping sweep trouble"
    " undo_crashes undo_histories",
    "browser": "console pictures",
    "cli": "approvals dead_state dripping exit_codes faults forged_plans invocation json landing mixed_exits"
    " older_commits owners_packages passwords reviewed saved_plans signals small_steps state state_rebuild"
    " state_retention terminal undo unmerged",
    "connector": "registration",
    "git_state": "broken_clone commands crashes forged kills set_back_meanwhile ssh store",
    "generate": "live_sources paging safety sandbox",
    "manifest": "hostile meaning",
    "operate": "deployment many_runners standby",
    "packaging": "ci_files wheel",
    "planning": "data_rows gate_arithmetic lint_levels properties shrinking",
    "posted_time": "audit commands drift drift_reading fetch_by_hand kill mariadb postgresql"
    " postgresql_settings properties side_by_side sinks tags unreadable webhook_receiver",
    "publish": "pipeline publish reviewed",
    "pull_requests": "policy two_sides",
    "quarantine": "killed other_states quarantine",
    "serve": "delivering failing_over living lost_answers stopping unattended webhook",
    "store": "inbox",
    "tools": "init rebuild_histories schema_command",
}
"""By folder, without `test_`."""


def is_slow(module: Path) -> bool:
    return module.stem.removeprefix("test_") in SLOW.get(module.parent.name, "").split()


def is_left_out(module: Path, expression: str) -> bool:
    """Whether none of its tests would be run."""
    return expression == WITHOUT and is_slow(module)


def mark(items: list[pytest.Item]) -> None:
    """Mark the tests of slow modules."""
    for item in items:
        if is_slow(item.path):
            item.add_marker(pytest.mark.slow)

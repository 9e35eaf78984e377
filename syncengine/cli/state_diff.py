"""state diff: compare the rows of two states."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from syncengine.cli.options import Globals
from syncengine.document.comparison import Comparison, compare
from syncengine.errors import Usage
from syncengine.plan.aim import may_be_held
from syncengine.project.content import content_of
from syncengine.project.environments import environment_names
from syncengine.resource import Recorded
from syncengine.state import transfer
from syncengine.state.store import open_state


def differences(options: Globals, other: str) -> Comparison[str]:
    """Compare the project's state with the state of another environment, or with an export in a file."""
    return compare(_contents(_rows_of(options, other)), _contents(_rows(options)))


def _rows(options: Globals) -> list[Recorded]:
    with open_state(options.project().state, write=False) as state:
        return list(state.rows())


def _rows_of(options: Globals, other: str) -> list[Recorded]:
    config = options.project().config
    if config is not None and other in environment_names(config):
        return _rows(replace(options, environment=other))
    path = options.folder / other
    if not path.is_file():
        raise Usage(f"{other} is neither an environment of the project file nor a file that `state export` wrote")
    return transfer.read(content_of(path, other), other).rows


def _contents(rows: Iterable[Recorded]) -> dict[str, object]:
    """Return the recorded content of each resource that the service may hold, without ids, places and doubts."""
    return {
        str(row.key): {
            "status": row.status.value,
            "protect": row.protect,
            "fields": dict(row.body.fields),
            "keywords": frozenset(row.body.keywords),
            "metadata": dict(row.body.metadata),
        }
        for row in rows
        if may_be_held(row)
    }

"""desired, recorded rows → nothing, or a refusal: a source that yields nothing is not "delete everything"; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from syncengine.desired import Desired
from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.resource import Key, Recorded, Status


def refuse_emptied(wanted: Desired, recorded: Mapping[Key, Recorded]) -> None:
    """Problems for each source without rows of which resources are recorded (engine.md 2.7)."""
    if not wanted.emptied:
        return
    made = Counter(
        row.source.data.file
        for row in recorded.values()
        if row.status is Status.ACTIVE and row.source is not None and row.source.data is not None
    )
    found = [
        Diagnostic(
            severity=Severity.ERROR,
            code="source-empty",
            message=f"{each.data} has no rows, and {made[each.data]} resources were made of it before;"
            " write `allowEmpty: true` if that is right",
            file=each.file,
            line=each.at[0],
            column=each.at[1],
        )
        for each in wanted.emptied
        if made[each.data]
    ]
    if found:
        raise Problems(found)

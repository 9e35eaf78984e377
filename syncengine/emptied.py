"""desired, recorded rows → nothing, or a refusal: a source that yields nothing is not "delete everything"; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping

from syncengine.desired import Desired, Emptied
from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.origins import origins, template_of
from syncengine.resource import Key, Recorded, Status


def refuse_emptied(wanted: Desired, recorded: Mapping[Key, Recorded]) -> None:
    """Problems for each source without rows, where something was made of it that no template makes any more."""
    if not wanted.emptied:
        return
    rows = [row for row in recorded.values() if row.status is Status.ACTIVE]
    lost = origins(rows, wanted.resources).lost.difference(wanted.resources)
    made = Counter(place for key in lost if (place := _made_at(recorded[key], wanted.files)))
    found = [
        Diagnostic(
            severity=Severity.ERROR,
            code="source-empty",
            message=f"{each.data} has no rows, and {_lost(each, made)} resources were made of it before;"
            " write `allowEmpty: true` if that is right",
            file=each.file,
            line=each.at[0],
            column=each.at[1],
        )
        for each in wanted.emptied
        if _lost(each, made)
    ]
    if found:
        raise Problems(found)


def _made_at(row: Recorded, manifests: Container[str]) -> tuple[str, str] | None:
    """The source of a row, and its manifest; nothing in its place where that is none any more."""
    template = template_of(row.source)
    return (template.data, template.file if template.file in manifests else "") if template else None


def _lost(each: Emptied, made: Mapping[tuple[str, str], int]) -> int:
    """What was made of the source; of a text template also what it made of no row that is known."""
    return made[each.data, each.file] + made[each.data, ""] + made[each.file, each.file]

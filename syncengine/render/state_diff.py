"""Comparison of two states → a document and text; pure."""

from __future__ import annotations

from collections.abc import Iterator

from syncengine.document.comparison import Comparison, ValueChange
from syncengine.plan.since import in_words
from syncengine.render.escape import visible
from syncengine.render.json import Document
from syncengine.render.words import count_of

FORMAT = "syncengine.state-diff/v1"


def diff_document(compared: Comparison[str], other: str) -> Document:
    """Return the JSON document of `state diff`; `before` is the other state, `after` the project's own state."""
    return {
        "format": FORMAT,
        "other": other,
        "new": compared.new,
        "gone": compared.gone,
        "different": [
            {"address": address, "changes": [_change(change) for change in changes]}
            for address, changes in compared.different.items()
        ],
        "same": compared.same,
    }


def _change(change: ValueChange) -> Document:
    return {"path": change.path, "before": change.before, "after": change.after}


def diff_text(compared: Comparison[str], other: str) -> str:
    return "\n".join(_lines(compared, visible(other))) + "\n"


def _lines(compared: Comparison[str], other: str) -> Iterator[str]:
    if compared.is_equal:
        yield f"Both states record the same {count_of(compared.same, 'resource')}."
        return
    yield from (f"+ {visible(address)}  only here" for address in compared.new)
    yield from (f"- {visible(address)}  only in {other}" for address in compared.gone)
    for address, changes in compared.different.items():
        yield f"~ {visible(address)}  {visible(in_words(changes))}"
    counts = f"{len(compared.new):,} only here, {len(compared.gone):,} only in {other}"
    yield f"{counts}, {len(compared.different):,} different ({other} → here), {compared.same:,} the same."

"""`bodies.py PLAN FILE`: what a saved plan sends, each line a path and a JSON body. A process of its own, since what a
process starts is said to hold at least what itself held."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from syncengine.apply.guards import planned_again
from syncengine.plan.calls import Call, Item
from syncengine.plan.saved import load
from syncengine.render.documents import SHOWN
from syncengine.service.operations import OPERATIONS, SINGLE_BODIES, JsonObject, tag_body
from syncengine.state.store import open_state


def request(call: Call) -> tuple[str, object]:
    """Path and body."""
    operation = OPERATIONS[call.operation]
    if operation.items:
        return operation.path, {operation.items: [tag(item) for item in call.items]}
    return operation.path, SINGLE_BODIES[operation.id](call.items[0].effects[0])


def tag(item: Item) -> JsonObject:
    """A tag of no category."""
    return tag_body(item.effects[0], None, spell_name=item.spell_name)


if __name__ == "__main__":
    with Path(sys.argv[2]).open("wb") as file, open_state(".syncengine/state.db", write=False) as state:
        plan = planned_again(load(Path(sys.argv[1]), SHOWN), state, deletes_tags=False).plan
        file.writelines(msgspec.json.encode(request(call)) + b"\n" for call in plan.calls())

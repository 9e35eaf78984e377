"""Walks through several manifests: after each apply the next plan is empty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from syncengine.manifest.desired import Desired
from syncengine.plan.request import Scope
from syncengine.project.model import Ownership
from syncengine.resource import Key, Removal, Status

from .applying import applied
from .estate import NOTHING, Rows, ask, is_as_declared, planned, says_nothing

To = tuple[str, str]
"""One manifest of a walk, and the statuses of rows after it."""


def to(manifest: str, expected: str = "") -> To:
    return manifest, expected


POLICIES: dict[str, dict[str, Any]] = {
    "protection": {"tag_removal": Removal.RETIRE},
    "activity types, exact": {"activity_types": Ownership.EXACT},
    "activity types, additive": {"activity_types": Ownership.ADDITIVE},
}
WALKS: dict[str, list[To]] = {
    "a tag's life": [
        to("tags: [{name: ALFA}]", "tag/ALFA active"),
        to("tags: [{name: ALFA, description: d, url: http://u, keywords: [k1, k2], metadata: {A: '1', B: '2'}}]"),
        to("tags: [{name: ALFA, description: e, keywords: [k2, k3], metadata: {A: '3', C: '4'}}]"),
        to("tags: [{name: ALFA}]"),
        to("{}", "tag/ALFA released"),
        to("tags: [{name: ALFA, keywords: [k9]}]", "tag/ALFA active"),
    ],
    "fields come and go": [
        to(
            "tags: [{name: ALFA, url: http://u, path: /x, externalId: '1', assigneeExternalIds: [jd],"
            " visibility: PUBLIC}]"
        ),
        to("tags: [{name: ALFA, url: '', path: /, externalId: '', assigneeExternalIds: []}]"),
        to("tags: [{name: ALFA}]"),
        to("tags: [{name: ALFA, url: '', closedTimestamp: 5, defaultActivityTypeCode: A1}]"),
        to("tags: [{name: ALFA, createdTimestamp: 2024-05-01T09:00:00Z}]"),
        to("tags: [{name: ALFA, description: ''}]"),
    ],
    "keywords by spelling": [
        to("tags: [{name: ALFA, keywords: [Straße, Müller, acme]}]"),
        to("tags: [{name: ALFA, keywords: [STRASSE, 'Mu\u0308ller', ACME]}]"),
        to("tags: [{name: ALFA, keywords: [ACME, acme]}]"),
        to("tags: [{name: ALFA, keywords: [acme], excludeTagNameKeyword: true}]"),
        to("tags: [{name: ALFA, keywords: [alfa]}]"),
        to("tags: [{name: ALFA}]"),
    ],
    "the name as a keyword": [
        to("tags: [{name: ALFA, excludeTagNameKeyword: true}]"),
        to("tags: [{name: ALFA, excludeTagNameKeyword: true, keywords: [ALFA]}]"),
        to("tags: [{name: ALFA}]"),
        to("tags: [{name: ALFA, excludeTagNameKeyword: true}]"),
    ],
    "a tag renamed again and again": [
        to("tags: [{name: ALFA, keywords: [k]}]"),
        to("tags: [{name: MIKE, keywords: [k], previously: [ALFA]}]", "tag/ALFA retired, tag/MIKE active"),
        to("tags: [{name: ZULU, keywords: [k], previously: [MIKE, ALFA]}]", "tag/MIKE retired, tag/ZULU active"),
        to("tags: [{name: ALFA, previously: [ZULU]}]", "tag/ALFA active, tag/ZULU retired"),
    ],
    "two tags become one, and two again": [
        to("tags: [{name: ALFA}, {name: MIKE}]"),
        to("tags: [{name: ZULU, previously: [ALFA, MIKE]}]", "tag/ALFA retired, tag/MIKE retired"),
        to("tags: [{name: ALFA}, {name: MIKE}]", "tag/ALFA active, tag/MIKE active, tag/ZULU released"),
    ],
    "protection": [
        to("tags: [{name: ALFA, protect: true}]"),
        to("{}", "tag/ALFA released"),
        to("tags: [{name: ALFA, protect: false}]", "tag/ALFA active"),
        to("{}", "tag/ALFA retired"),
    ],
    "a category and its members": [
        to("tagCategories: [{externalId: acme, label: A, keywords: [k]}]\ntags: [{name: ALFA, category: acme}]"),
        to("tagCategories: [{externalId: acme}]\ntags: [{name: ALFA}, {name: MIKE, category: acme}]"),
        to("tagCategories: [{externalId: zeta}]\ntags: [{name: MIKE, category: zeta}]", "category/acme deleted"),
        to("tags: [{name: MIKE, tagCategoryId: elsewhere}]", "category/zeta deleted"),
        to("tagCategories: [{externalId: acme}]\ntags: [{name: MIKE, category: acme}]", "category/acme active"),
        to("{}", "category/acme deleted, tag/MIKE deleted, tag/ALFA released"),
    ],
    "a category renamed there and back": [
        to("tagCategories: [{externalId: old, label: L, description: d}]\ntags: [{name: ALFA, category: old}]"),
        to(
            "tagCategories: [{externalId: new, label: L, previously: [old]}]\ntags: [{name: ALFA, category: new}]",
            "category/old deleted, category/new active",
        ),
        to(
            "tagCategories: [{externalId: old, previously: [new]}]\ntags: [{name: ALFA, category: old}]",
            "category/old active, category/new deleted",
        ),
    ],
    "a category renamed over its forgotten members": [
        to("tagCategories: [{externalId: old}]\ntags: [{name: ALFA, category: old}, {name: MIKE, category: old}]"),
        to("tagCategories: [{externalId: old}]\ntags: [{name: ALFA, category: old}]", "tag/MIKE released"),
        to("tagCategories: [{externalId: new, previously: [old]}]", "tag/ALFA released, tag/MIKE released"),
        to("{}", "category/new deleted, tag/ALFA deleted, tag/MIKE deleted"),
    ],
    "a renamed member of a category that goes": [
        to("tagCategories: [{externalId: acme}]\ntags: [{name: ALFA, category: acme}]"),
        to("tags: [{name: MIKE, previously: [ALFA]}]", "tag/ALFA deleted, tag/MIKE active, category/acme deleted"),
    ],
    "a kept category": [
        to("tagCategories: [{externalId: acme}]\ntags: [{name: ALFA, category: acme, protect: true}]"),
        to("{}", "category/acme released, tag/ALFA released"),
        to("tagCategories: [{externalId: acme}]\ntags: [{name: ALFA, category: acme, protect: false}]"),
        to("{}", "category/acme deleted, tag/ALFA deleted"),
    ],
    "activity types, owned": [
        to("activityTypes: [{code: A1, label: L}, {code: A2, label: L, enableIfNew: true, description: d}]"),
        to("activityTypes: [{code: A1, label: M, enableIfNew: true}, {code: A2, label: L}]"),
        to("activityTypes: [{code: A1, label: M}]", "activity-type/A2 deleted"),
        to("activityTypes: [{code: A1, label: M}, {code: A2, label: N, reenableIfArchived: true}]"),
        to("activityTypes: [{code: A2, label: N, reenableIfArchived: false}]", "activity-type/A1 deleted"),
        to("{}", "activity-type/A2 deleted"),
    ],
    "activity types, exact": [
        to("activityTypes: [{code: A1, label: L}, {code: A2, label: L, protect: true}]"),
        to("activityTypes: [{code: A1, label: L, description: d}]", "activity-type/A2 released"),
        to("{}", "activity-type/A1 deleted, activity-type/A2 released"),
    ],
    "activity types, additive": [
        to("activityTypes: [{code: A1, label: L}, {code: A2, label: L}]"),
        to("activityTypes: [{code: A1, label: L}]", "activity-type/A2 released"),
        to("activityTypes: [{code: A2, label: L}]", "activity-type/A1 released, activity-type/A2 active"),
    ],
}


def are_as_wanted(desired: Desired, rows: Rows) -> bool:
    """Return whether every desired resource is recorded as declared and is not in doubt."""
    return all(
        (row.status, row.doubtful, row.confirmed) == (Status.ACTIVE, False, True)
        and (row.source, row.protect) == (resource.source, resource.protect)
        and is_as_declared(row, resource)
        for key, resource in desired.resources.items()
        if (row := rows[key])
    )


def statuses(rows: Rows, expected: str) -> Iterator[str]:
    """Yield the statuses of the rows that `expected` names, in its format."""
    for line in filter(None, expected.split(", ")):
        address = line.rpartition(" ")[0]
        yield f"{address} {rows[Key.parse(address)].status.value}"


@pytest.mark.parametrize("is_in_pieces", [False, True], ids=["as a whole", "in selected pieces"])
@pytest.mark.parametrize("name", WALKS)
def test_after_each_apply_the_next_plan_is_empty(name: str, is_in_pieces: bool) -> None:
    """The rows are as declared, too, and as after an apply of the last manifest alone."""
    pieces = [Scope(targets=("category/*",)), Scope(targets=("tag/*",)), Scope(no_delete=True)] if is_in_pieces else []
    policy, rows = POLICIES.get(name, {}), NOTHING
    for manifest, expected in WALKS[name]:
        desired = ask(manifest)
        for scope in (*pieces, Scope()):
            rows = applied(rows, planned(desired, rows, scope=scope, **policy))
        assert says_nothing(planned(desired, rows, **policy))
        assert are_as_wanted(desired, rows)
        assert is_in_pieces or ", ".join(statuses(rows, expected)) == expected
    assert are_as_wanted(desired, applied(NOTHING, planned(desired, NOTHING, **policy)))

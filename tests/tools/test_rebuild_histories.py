"""A state that is rebuilt from Git after a random history removes nothing that the lost state would have kept."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from syncengine.errors import Problems
from syncengine.plan.diff import Action
from syncengine.plan.model import Plan
from syncengine.project.git_tree import RevisionFiles
from syncengine.project.load import load_project
from syncengine.project.model import Ownership, Project
from syncengine.resource import Key, Kind, Recorded, Removal, Status
from syncengine.tools.state_edits import rebuilt
from tests.planning.applying import applied
from tests.planning.estate import Rows, ask, planned
from tests.planning.strategies import manifests
from tests.pull_requests.clones import Clone
from tests.support.profiles import tried

pytestmark = pytest.mark.slow

HISTORIES_TRIED = int(os.environ.get("SYNCENGINE_TEST_HISTORIES", "40"))
REMOVALS = (Action.DELETE, Action.RETIRE, Action.FORGET)


POLICIES = st.fixed_dictionaries(
    {
        "tag_removal": st.sampled_from(Removal),
        "activity_types": st.sampled_from([Ownership.OWNED, Ownership.EXACT]),
        "deletes_tags": st.just(True),
    }
)
COMMITS = st.lists(st.tuples(manifests(), st.integers(0, 3).map(bool)), min_size=1, max_size=5)
"""The manifest of each commit, and whether the commit was applied."""


def lost_and_rebuilt(texts: Sequence[str]) -> Rows:
    """The rows of a state that is rebuilt from a repository with a commit for each manifest."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Clone(Path(folder))
        clone.git("init", "-q")
        clone.write("syncengine.yaml", "version: 1\nservice: {baseUrl: sandbox}\n")
        for text in texts:
            clone.commit(all=text)

        def loaded(files: RevisionFiles) -> Project:
            return load_project(folder=files.repo.root, checkout=files.checkout, environ={})

        project = load_project(folder=clone.folder, environ={})
        new = rebuilt("HEAD", project, loaded, replaces=False, create=True)
        return {row.key: row for row in new.rows}


def removed(plan: Plan) -> dict[Key, Key | None]:
    """Return the resources that a plan removes, each with the category that it is deleted with."""
    return {change.key: change.cascade for change in plan.changes if change.action in REMOVALS}


def with_ids(rows: Rows, original: Rows) -> dict[Key, Recorded]:
    """Return the rows with the original ids of categories, which the service still returns."""
    return {
        key: replace(row, server_id=original[key].server_id) if key.kind is Kind.CATEGORY and key in original else row
        for key, row in rows.items()
    }


@settings(max_examples=tried(HISTORIES_TRIED), deadline=None)
@given(st.data(), COMMITS, POLICIES, manifests())
def test_a_rebuilt_state_removes_what_the_lost_one_would_have(
    data: st.DataObject, commits: list[tuple[str, bool]], policies: dict[str, object], then: str
) -> None:
    rows: Rows = {}
    texts, last = [], None
    for manifest, is_applied in commits:
        texts.append(manifest)
        if is_applied:
            try:
                rows = applied(rows, planned(manifest, rows, **policies))
            except Problems:
                texts.pop()
                continue
            last = manifest, len(texts)
    if last is None:
        return
    manifest, count = last
    lost, declared = lost_and_rebuilt(texts[:count]), set(ask(manifest).resources)
    assert {key for key, row in lost.items() if row.status is Status.ACTIVE} == lost.keys() == declared
    again = planned(manifest, lost, **policies)
    statements = set(ask(manifest).removed)  # these ask for a removal in every plan
    assert not removed(again).keys() - statements
    sent = with_ids(applied(lost, again), rows)
    assert not removed(planned(manifest, sent, **policies)).keys() - statements
    try:
        original = planned(then, rows, **policies)
    except Problems:
        return
    plan = planned(then, sent, **policies)
    compared = removed(plan)
    kept = {note.key for note in plan.notes if note.kind == "kept"}
    for key, cascade in removed(original).items():
        assert key not in declared or key in compared or kept & {key, cascade}, (key, cascade)
    assert compared.keys() <= declared | set(ask(then).removed)

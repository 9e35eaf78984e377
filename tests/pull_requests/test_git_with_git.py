"""`plan --base REV --no-state` compares two revisions in Git without any secret (docs/reviews.md)."""

from __future__ import annotations

import os

import pytest

from tests.posted_time.receiver import receiving

from .clones import PROJECT, Clone, Forge, Json, origins, tags

SECRETS = """version: 1
service: {apiKey: {env: KEY_OF_SERVICE}}
state: {file: secrets/state}
sources:
  pms: {sql: {env: URL_OF_PMS}}
  crm: {http: {url: {env: URL_OF_CRM}, headers: {Authorization: {file: secrets/crm}}}}
policy: {tagRemoval: retire}
"""
FROM_SQL = """generate:
  - forEach: {sql: {source: pms, query: SELECT name FROM matters}}
    tagCategories: [{externalId: '{{ row.name }}', label: x}]
    tags: [{name: '{{ row.name }}'}]
"""
FROM_CSV = "generate:\n  - forEach: {csv: ../data/m.csv}\n    tags: [{name: '{{ row.n }}'}]\n"
TEMPLATE = "tags:\n{% for row in data(source='crm', path='x') %}\n  - name: {{ row.name }}\n{% endfor %}\n"


@pytest.fixture
def fork(forge: Forge) -> Clone:
    """A project whose settings name secrets, in a clone where none of them exists."""
    clone = forge.clone("fork")
    clone.commit(settings=SECRETS, tags=tags(Abel="one", Brun="one", Cole="one"), live=FROM_SQL)
    clone.write("manifests/all.yaml.j2", TEMPLATE)
    clone.commit()
    clone.push()
    clone.git("checkout", "-q", "-b", "pr")
    return clone


def compared(clone: Clone, *arguments: str) -> Json:
    return clone.plan("--no-state", *arguments)


def test_git_is_compared_with_git(fork: Clone) -> None:
    """No state, key or other secret is needed; blocks that read live sources are left out and named."""
    fork.commit(tags=tags(Abel="one", Brun="two", Dorn="one"))
    plan = compared(fork)
    assert {c["address"]: (c["action"], c["origin"]) for c in plan["changes"]} == {
        "tag/Brun": ("update", "pull-request"),
        "tag/Cole": ("retire", "pull-request"),
        "tag/Dorn": ("create", "pull-request"),
    }
    left_out = {d["file"]: d["message"] for d in plan["diagnostics"] if d["code"] == "source-left-out"}
    assert "pms" in left_out["manifests/live.yaml"]
    assert "crm" in left_out["manifests/all.yaml.j2"]
    assert not (fork.project / "secrets").exists()
    assert not (fork.project / ".syncengine" / "state.db").exists()


def test_files_of_secrets_are_not_read(fork: Clone) -> None:
    """Secret files are pipes here, so that opening one would block the plan for ever."""
    (fork.project / "secrets").mkdir()
    for name in ("state", "crm"):
        os.mkfifo(fork.project / "secrets" / name)
    fork.environ |= {"KEY_OF_SERVICE": "k", "SYNCENGINE_STATE": "postgresql://nobody@127.0.0.1:1/none"}
    fork.commit(tags=tags(Abel="one", Brun="one", Cole="two"))
    assert origins(compared(fork)) == {"tag/Cole": "pull-request"}


def test_resources_that_a_new_live_source_may_make_are_not_removed(fork: Clone) -> None:
    """If a block reads a live source instead of a file, resources from the file count as possibly kept, not removed."""
    fork.write("data/m.csv", "n\nEgan matters\nFenn matters\n")
    fork.merge_unapplied(more=FROM_CSV)
    fork.commit(more=FROM_SQL, tags=tags(Abel="one", Brun="two"))
    plan = compared(fork)
    assert origins(plan) == {"tag/Brun": "pull-request"}
    said = " ".join(d["message"] for d in plan["diagnostics"] if d["code"] == "source-left-out")
    assert "3 resources are no longer declared in Git" in said


LIVE_BLOCKS = {"gone": "tags: []\n", "rewritten": FROM_SQL.replace("name FROM", "code AS name FROM")}


@pytest.mark.parametrize("text", LIVE_BLOCKS.values(), ids=LIVE_BLOCKS)
def test_a_live_block_that_differs_has_an_unknown_effect(fork: Clone, text: str) -> None:
    """A changed block of a live source is a warning `unknown-effect` at its place, and exit code 2; the same block
    changes nothing."""
    fork.commit()
    assert "This pull request makes no changes." in fork.run("plan", "--base", "origin/main", "--no-state").out
    assert fork.code("--no-state") == 0
    fork.commit(live=text)
    plan = compared(fork)
    (unknown,) = [d for d in plan["diagnostics"] if d["code"] == "unknown-effect"]
    assert (unknown["severity"], unknown["file"]) == ("warning", "manifests/live.yaml")
    assert unknown["line"] == (2 if "generate" in text else None)
    shown = fork.run("plan", "--base", "origin/main", "--no-state").out
    assert "makes no changes." not in shown
    assert "effect of 1 file" in shown
    assert fork.code("--no-state") == 2


def test_a_large_removal_needs_an_approval_without_the_state(fork: Clone) -> None:
    """The share of removals is measured against the tags that the base declares. No approvals are shown, since they
    would not match those of the real plan."""
    fork.commit(tags=tags(Abel="one"))
    found = compared(fork)["gate"]
    assert (found["trippedBy"], found["approve"]) == (["pull-request"], None)
    assert [unit["approve"] for unit in found["units"]] == ["" for _ in found["units"]] != []
    assert fork.code("--no-state") == 4
    for form in ("text", "markdown", "html"):
        text = fork.run("plan", "--base", "origin/main", "--no-state", "--format", form).out
        assert "only a plan that reads the state shows how to approve" in " ".join(text.split())
        assert "approvals:" not in text
        assert "--approve-deletes" not in text


def test_a_plan_without_the_state_cannot_be_saved(fork: Clone) -> None:
    """--no-state with --out, or without --base, is a usage error."""
    assert fork.run("plan", "--base", "origin/main", "--no-state", "--out", "p").code == 64
    assert fork.run("plan", "--no-state").code == 64


def test_renames_and_categories_are_compared_as_they_were_applied(fork: Clone) -> None:
    """Without a state, a removed category deletes its tags, and a tag with `previously` is compared as a rename."""
    fork.merge_unapplied(
        live="tags: []\n",
        groups="tagCategories: [{externalId: g, label: G}]\ntags: [{name: In g, category: g}, {name: Old one}]\n",
    )
    fork.commit(groups="tags: [{name: New one, previously: [Old one]}]\n")
    found = {change["address"]: change["action"] for change in compared(fork)["changes"]}
    assert found == {"category/g": "delete", "tag/In g": "delete", "tag/New one": "create", "tag/Old one": "retire"}


def test_an_equal_source_is_read_once_for_both_sides(clone: Clone) -> None:
    """A source that both sides read in the same way is requested once, even if its block moved to another line."""
    block = "generate:\n  - forEach: {http: {source: crm, path: matters}}\n    tags: [{name: '{{ row.name }}'}]\n"
    settings = PROJECT + "sources: {crm: {http: {url: {env: CRM}}}}\n"
    clone.merge_unapplied(settings=settings, live=block)
    with receiving() as crm:
        crm.answer = lambda got: (200, [{"name": "Egan matters"}])
        crm.headers["Content-Type"] = "application/json"
        clone.environ["CRM"] = crm.url
        clone.commit(live=f"# moved\n{block}", tags=tags(Abel="two"))
        plan = clone.plan()
        assert origins(plan)["tag/Egan matters"] == "waiting"
        assert [got.path for got in crm.got] == ["/matters"]
        clone.commit(live=block.replace("path: matters", "path: matters, query: {open: yes}"))
        crm.got.clear()
        clone.plan()
        assert sorted(got.path for got in crm.got) == ["/matters", "/matters?open=yes"]

"""Only what was reviewed is applied: `plan --since` and `apply --reviewed` (docs/reviews.md)."""

from __future__ import annotations

import json
import shutil

import pytest

from .program import Ended, Project, category, tag
from .service import Json, Service

pytestmark = pytest.mark.slow

BEFORE: dict[str, list[Json]] = {"tags": [tag("A-1", description="one"), tag("B-1", keywords=["b"]), tag("C-1")]}
WANTED: dict[str, list[Json]] = {
    "tags": [tag("A-1", description="two", keywords=["a"]), tag("B-1", keywords=["b", "bb"]), tag("C-1"), tag("D-1")]
}


def changed(name: str, **fields: object) -> dict[str, list[Json]]:
    """WANTED with other fields for one tag."""
    return {"tags": [{**each, **fields} if each["name"] == name else each for each in WANTED["tags"]]}


@pytest.fixture
def reviewed(project: Project) -> Project:
    """BEFORE is applied, WANTED is declared, and `plan.json` is its reviewed plan."""
    project.settle(**BEFORE)
    project.wants(**WANTED)
    review(project)
    return project


def review(project: Project, file: str = "plan.json", *more: str) -> None:
    done = project.run("plan", "--report", f"json={file}", *more)
    assert done.code == 0, done.err


def apply(project: Project, *more: str, file: str = "plan.json") -> Ended:
    return project.run("apply", "-y", "--format", "json", "--reviewed", file, *more)


def errors(done: Ended) -> list[Json]:
    return [each for each in done.document["diagnostics"] if each["severity"] == "error"]


def messages(done: Ended) -> str:
    return "\n".join(each["message"] for each in done.document["diagnostics"])


def refused(project: Project, service: Service, *more: str) -> Ended:
    """Apply more than was reviewed: nothing is sent."""
    asked = service.asked()
    done = apply(project, *more)
    assert (done.code, errors(done)[0]["code"]) == (5, "more-than-reviewed"), (done.out, done.err)
    assert service.asked() == asked
    return done


def test_what_was_reviewed_is_applied(reviewed: Project, service: Service) -> None:
    """`apply --reviewed` makes a new plan with another id and compares it."""
    done = apply(reviewed)
    assert (done.code, done.document["status"]) == (0, "complete"), done.out
    assert reviewed.plan().changes == ()
    plan = json.loads((reviewed.folder / "plan.json").read_text())
    assert plan["id"] != done.document["plan"]


def test_a_saved_plan_is_a_reviewed_one_too(project: Project) -> None:
    """The file of `--out` also serves as a reviewed plan."""
    project.settle(**BEFORE)
    project.wants(**WANTED)
    assert project.run("plan", "--out", "saved.plan").code == 0
    assert apply(project, file="saved.plan").code == 0


@pytest.mark.parametrize(
    ("wanted", "address"),
    {
        "another value": (changed("A-1", description="three"), "tag/A-1"),
        "one more keyword": (changed("B-1", keywords=["b", "bb", "more"]), "tag/B-1"),
        "one more field": (changed("D-1", description="new"), "tag/D-1"),
        "a half of a change": (changed("A-1", keywords=[]), "tag/A-1"),
        "another tag": ({"tags": [*WANTED["tags"], tag("E-1")]}, "tag/E-1"),
        "one that was not to change": (changed("C-1", description="hm"), "tag/C-1"),
        "one that leaves": ({"tags": [each for each in WANTED["tags"] if each["name"] != "C-1"]}, "tag/C-1"),
    }.values(),
)
def test_more_than_was_reviewed_is_refused(
    reviewed: Project, service: Service, wanted: dict[str, list[Json]], address: str
) -> None:
    """The refusal names the address, and nothing is sent."""
    reviewed.wants(**wanted)
    done = refused(reviewed, service)
    assert [d.get("address") for d in errors(done)] == [None, address]
    compared = reviewed.run("plan", "--since", "plan.json", "--format", "json", "--detailed-exitcode")
    assert compared.code == 5
    assert [each["address"] for each in compared.document["since"]["more"]] == [address]


@pytest.mark.parametrize("name", ["A-1", "D-1"])
def test_a_reviewed_change_that_was_dropped_may_be_missing(reviewed: Project, name: str) -> None:
    """`--since` lists it as gone, and the rest is applied."""
    kept = [each for each in WANTED["tags"] if each["name"] != name]
    reviewed.wants(tags=kept + [each for each in BEFORE["tags"] if each["name"] == name])
    compared = reviewed.run("plan", "--since", "plan.json", "--format", "json", "--detailed-exitcode")
    assert (compared.code, compared.document["since"]["gone"]) == (2, [f"tag/{name}"])
    assert apply(reviewed).code == 0


def test_a_reviewed_change_applied_meanwhile_may_be_missing(reviewed: Project) -> None:
    """This also holds if only a part of a change was applied."""
    reviewed.settle(tags=[tag("A-1", description="two"), *BEFORE["tags"][1:]])
    reviewed.wants(**WANTED)
    assert apply(reviewed).code == 0


def test_other_lines_and_another_order_mean_the_same(reviewed: Project) -> None:
    (reviewed.folder / "manifests" / "all.yaml").unlink()
    reviewed.wants("b.yaml", tags=WANTED["tags"][::-1])
    assert apply(reviewed).code == 0


def test_a_refusal_names_the_run_that_changed_the_resource(reviewed: Project, service: Service) -> None:
    """It also shows the reviewed value and today's."""
    reviewed.settle(tags=[tag("A-1", description="between"), *BEFORE["tags"][1:]])
    reviewed.wants(**WANTED)
    done = refused(reviewed, service)
    run = reviewed.run("state", "history", "--format", "json").document["runs"][1]["id"]
    assert f"last changed by run {run} (apply)" in messages(done)
    assert "reviewed → today: fields.description.before: one → between" in messages(done)


def test_a_reviewed_plan_approves_nothing(project: Project) -> None:
    """A reviewed plan does not open the gate."""
    project.settle(tags=[tag(f"T-{number}") for number in range(4)])
    project.wants(tags=[tag("T-0")])
    review(project)
    assert apply(project).code == 4
    assert apply(project, *project.approvals()).code == 0


def test_the_union_of_reviewed_plans_counts(project: Project) -> None:
    """Two reviewed plans together cover a plan that merges both, even if they change the same tag."""
    project.settle(**BEFORE)
    project.wants(tags=[tag("A-1", description="two"), *BEFORE["tags"][1:]])
    review(project, "one.json")
    project.wants(tags=[tag("A-1", description="one", keywords=["k"]), *BEFORE["tags"][1:], tag("D-1")])
    review(project, "two.json")
    project.wants(tags=[tag("A-1", description="two", keywords=["k"]), *BEFORE["tags"][1:], tag("D-1")])
    assert apply(project, file="one.json").code == 5
    assert apply(project, "--reviewed", "two.json", file="one.json").code == 0


def test_a_plan_reviewed_before_the_first_apply_can_be_repeated(project: Project, service: Service) -> None:
    """A plan without a state is accepted again after its first apply was killed."""
    project.wants(**WANTED)
    review(project)
    assert json.loads((project.folder / "plan.json").read_text())["basis"]["lineage"] is None
    project.kill_during(service, "upsertTags", "apply", "-y", "--reviewed", "plan.json")
    assert apply(project, "--lock-timeout", "0s").code == 0
    assert project.plan().changes == ()


OTHERS = {
    "service": ("service", "base_url", "http://elsewhere.example", "another service"),
    "team": ("service", "team", "Another", "team 'Another'"),
    "state": ("basis", "lineage", "abc", "another state"),
    "environment": ("basis", "environment", "production", "environment production"),
}


@pytest.mark.parametrize(("part", "name", "value", "said"), OTHERS.values(), ids=OTHERS)
def test_a_plan_for_something_else_is_refused(
    reviewed: Project, service: Service, part: str, name: str, value: str, said: str
) -> None:
    """The service, team, state and environment of the reviewed plan must match."""
    file = reviewed.folder / "plan.json"
    document = json.loads(file.read_text())
    document[part]["baseUrl" if name == "base_url" and "baseUrl" in document[part] else name] = value
    file.write_text(json.dumps(document))
    done = refused(reviewed, service)
    assert said in messages(done)


@pytest.mark.parametrize("more", [(), ("--reviewed", "plan.json")], ids=["alone", "beside one that is there"])
def test_a_missing_reviewed_plan_is_refused(reviewed: Project, service: Service, more: tuple[str, ...]) -> None:
    """`apply` exits with 5, sends nothing and names the file once, even if another reviewed plan exists."""
    asked = service.asked()
    done = apply(reviewed, *more, file="nowhere.json")
    assert (done.code, done.codes[-1:]) == (5, ["reviewed-missing"])
    assert service.asked() == asked
    told = reviewed.run("apply", "-y", "--reviewed", "nowhere.json", *more)
    assert (told.out + told.err).count("nowhere.json") == 1
    assert "error[reviewed-missing]: the reviewed plan nowhere.json does not exist" in told.out + told.err


def test_a_missing_reviewed_plan_is_reported_before_the_gate_and_bad_manifests(
    reviewed: Project, service: Service
) -> None:
    """Approving the plan or correcting the manifests first would only lead to this refusal."""
    asked = service.asked()
    reviewed.wants(tags=[])
    assert apply(reviewed).code == 4
    closed = apply(reviewed, file="nowhere.json")
    assert (closed.code, closed.codes) == (5, ["reviewed-missing"])
    (reviewed.folder / "manifests" / "broken.yaml").write_text("tags: {")
    broken = apply(reviewed, file="nowhere.json")
    assert (broken.code, broken.codes) == (5, ["reviewed-missing"])
    assert service.asked() == asked


BAD = {
    "cut off": (lambda text: text[: len(text) // 2], "is not JSON, or incomplete"),
    "another document": (lambda text: '{"format": "syncengine.report/v1"}', "is damaged"),
    "errors": (lambda text: '{"format": "syncengine.diagnostics/v1", "diagnostics": []}', "contains no plan"),
    "an address": (lambda text: text.replace('"tag/D-1"', '"D-1"'), "is damaged"),
    "twice": (lambda text: text.replace('"tag/D-1"', '"tag/A-1"'), "is damaged"),
    "nested": (lambda text: "[" * 100_000, "is damaged"),
    "no basis": (lambda text: text.replace('"basis"', '"other"'), "is damaged"),
}


@pytest.mark.parametrize(("spoil", "said"), BAD.values(), ids=BAD)
def test_a_damaged_file_is_refused_in_a_sentence(reviewed: Project, service: Service, spoil: object, said: str) -> None:
    """Both `apply --reviewed` and `plan --since` report it as `plan-file`, and nothing is sent."""
    file = reviewed.folder / "plan.json"
    file.write_text(spoil(file.read_text()))  # type: ignore[operator] # one of two kinds
    asked = service.asked()
    for done in (apply(reviewed), reviewed.run("plan", "--since", "plan.json", "--format", "json")):
        assert (done.code, done.codes, said in messages(done)) == (1, ["plan-file"], True), done.out
    assert service.asked() == asked


def test_a_saved_plan_that_was_changed_is_refused(project: Project) -> None:
    project.wants(**WANTED)
    assert project.run("plan", "--out", "saved.plan").code == 0
    file = project.folder / "saved.plan"
    file.write_text(file.read_text().replace("two", "too"))
    done = apply(project, file="saved.plan")
    assert (done.code, "was changed after it was saved" in messages(done)) == (1, True)


def test_a_folder_and_a_link_to_nothing_are_no_plans(reviewed: Project) -> None:
    (reviewed.folder / "link.json").symlink_to("nowhere")
    for file in ("manifests", "link.json"):
        assert (done := apply(reviewed, file=file)).code == 1, done.out
        assert {"manifests": "is not a file", "link.json": "is not a file"}[file] in messages(done)


def test_a_saved_plan_and_reviewed_exclude_each_other(project: Project) -> None:
    project.wants(**WANTED)
    assert project.run("plan", "--out", "saved.plan").code == 0
    assert project.run("apply", "saved.plan", "--reviewed", "saved.plan").code == 64


# --- changes that belong together


RENAMED = {"tags": [tag("NEW-1", keywords=["k"], previously=["OLD-1"]), tag("STAYS-1"), tag("STAYS-2"), tag("STAYS-3")]}


@pytest.fixture
def renaming(project: Project) -> Project:
    """A reviewed rename, and a category whose delete takes one tag with it after another tag has moved out."""
    project.settings("policy: {maxDeletes: {tags: 100%, keywords: 100%}}")
    project.settle(
        tagCategories=[category("gone"), category("stays")],
        tags=[
            tag("OLD-1", keywords=["k"]),
            tag("MOVES-1", category="gone"),
            tag("GOES-1", category="gone"),
            tag("OTHER-1"),
        ],
    )
    project.wants(
        tagCategories=[category("stays")],
        tags=[tag("NEW-1", keywords=["k"], previously=["OLD-1"]), tag("MOVES-1", category="stays"), tag("OTHER-1")],
    )
    assert project.run("plan", "--report", "json=plan.json").code == 0
    return project


HALVES = {
    "the old name alone leaves": {
        "tagCategories": [category("stays")],
        "tags": [tag("MOVES-1", category="stays"), tag("OTHER-1")],
    },
    "the old name stays": {
        "tagCategories": [category("stays")],
        "tags": [
            tag("OLD-1", keywords=["k"]),
            tag("NEW-1", keywords=["k"]),
            tag("MOVES-1", category="stays"),
            tag("OTHER-1"),
        ],
    },
    "the category stays, and the tag moves": {
        "tagCategories": [category("gone"), category("stays")],
        "tags": [
            tag("NEW-1", keywords=["k"], previously=["OLD-1"]),
            tag("MOVES-1", category="stays"),
            tag("GOES-1", category="gone"),
            tag("OTHER-1"),
        ],
    },
    "the tag goes along": {
        "tagCategories": [category("stays")],
        "tags": [tag("NEW-1", keywords=["k"], previously=["OLD-1"]), tag("OTHER-1")],
    },
}


@pytest.mark.parametrize("wanted", HALVES.values(), ids=HALVES)
def test_no_half_of_a_rename_or_of_a_move_is_applied(
    renaming: Project, service: Service, wanted: dict[str, list[Json]]
) -> None:
    """A part of a reviewed rename or category delete counts as more than reviewed."""
    renaming.wants(**wanted)
    refused(renaming, service, *renaming.approvals())


def test_a_selection_does_not_separate_changes_that_belong_together(renaming: Project, service: Service) -> None:
    """Selecting the move alone is refused; selecting the complete rename is allowed."""
    refused(renaming, service, "--target", "tag/MOVES-1")
    assert apply(renaming, "--target", "tag/NEW-1", *renaming.approvals()).code == 0


def test_whole_units_may_be_missing(renaming: Project) -> None:
    """The rename as a whole may be dropped, while the category is deleted."""
    renaming.wants(
        tagCategories=[category("stays")],
        tags=[tag("OLD-1", keywords=["k"]), tag("MOVES-1", category="stays"), tag("OTHER-1")],
    )
    assert (done := apply(renaming, *renaming.approvals())).code == 0, messages(done)


def test_a_reviewed_plan_that_was_killed_goes_through_again(renaming: Project, service: Service) -> None:
    """What the killed run has done or begun counts as reviewed; tests/applying tries every instant."""
    renaming.kill_during(service, "deleteKeyword", "apply", "-y", "--reviewed", "plan.json", *renaming.approvals())
    done = apply(renaming, "--lock-timeout", "0s", *renaming.approvals())
    assert done.code == 0, done.out
    assert renaming.plan().changes == ()


def test_what_another_run_began_does_not_count_as_reviewed(reviewed: Project, service: Service) -> None:
    """If a run without this review left the row in doubt, the reviewed plan is refused."""
    reviewed.wants(**changed("A-1", description="three"))
    reviewed.kill_during(service, "upsertTags", "apply", "-y")
    reviewed.wants(**WANTED)
    assert apply(reviewed, "--lock-timeout", "0s").code == 5


# --- live sources


def live(project: Project, rows: list[tuple[str, str]]) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(project.folder / "crm.db")) as database, database:
        database.execute("CREATE TABLE IF NOT EXISTS matters (name TEXT, words TEXT)")
        database.execute("DELETE FROM matters")
        database.executemany("INSERT INTO matters VALUES (?, ?)", rows)


def test_rows_of_live_sources_need_no_review_but_their_removals_do(project: Project, service: Service) -> None:
    """Rows of a database are in no pull request, so their changes are allowed, but a removal is refused."""
    project.settings(
        "sources:",
        "  crm: {sql: 'sqlite:///crm.db'}",
        "policy: {tagRemoval: retire, maxDeletes: {tags: 100%, keywords: 100%}}",
    )
    manifests = project.folder / "manifests"
    manifests.mkdir()
    query = "{source: crm, query: 'SELECT name, words FROM matters'}"
    template = "{name: '{{ row.name }}', keywords: ['{{ row.words }}']}"
    (manifests / "live.yaml").write_text(f"generate:\n  - forEach: {{sql: {query}}}\n    tags: [{template}]\n")
    live(project, [("L-1", "a"), ("L-2", "b"), ("L-3", "c")])
    assert project.apply().code == 0
    live(project, [("L-1", "a"), ("L-2", "bb"), ("L-3", "c"), ("L-4", "d")])
    review(project)
    live(project, [("L-1", "aa"), ("L-2", "bbb"), ("L-3", "c"), ("L-4", "d"), ("L-5", "e")])
    compared = project.run("plan", "--since", "plan.json", "--format", "json", "--detailed-exitcode")
    assert (compared.code, compared.document["since"]["new"]) == (2, ["tag/L-1", "tag/L-5"]), compared.out
    assert apply(project).code == 0
    live(project, [("L-1", "aa"), ("L-2", "bbb"), ("L-4", "d"), ("L-5", "e")])
    done = refused(project, service)
    assert [d.get("address") for d in errors(done)[1:]] == ["tag/L-3"]


# --- plan --since


def test_the_comparison_is_shown_in_every_format(reviewed: Project) -> None:
    """It counts new, different, gone and equal changes, and shows differing values."""
    reviewed.wants(tags=[tag("A-1", description="three", keywords=["a"]), *BEFORE["tags"][1:], tag("D-1"), tag("E-1")])
    since = reviewed.run("plan", "--since", "plan.json", "--format", "json").document["since"]
    assert since["plan"] == json.loads((reviewed.folder / "plan.json").read_text())["id"]
    assert (since["new"], since["gone"], since["same"]) == (["tag/E-1"], ["tag/B-1"], 1)
    path = {"path": ["fields", "description", "after"], "before": "two", "after": "three"}
    assert since["different"] == [{"address": "tag/A-1", "changes": [path]}]
    for format in ("text", "markdown", "html"):
        out = reviewed.run("plan", "--since", "plan.json", "--format", format).out
        assert "1 new, 1 different, 1 gone, 1 the same" in out, format
        assert "two → three" in out, format
    assert "since" not in reviewed.run("plan", "--format", "json").document


def test_the_gate_comes_first(project: Project) -> None:
    """With `--detailed-exitcode` a closed gate exits with 4, and not 5."""
    project.settle(**BEFORE)
    review(project)
    project.wants(tags=[tag("X-1")])
    assert project.run("plan", "--since", "plan.json", "--detailed-exitcode").code == 4


def test_a_plan_that_rules_denied_is_no_reviewed_plan(project: Project, service: Service) -> None:
    """This holds even if the rule has been deleted since, perhaps by the same change."""
    project.settle(tags=[tag("HELD-1")])
    project.wants(tags=[tag("HELD-1"), tag("NEW-1")])
    rules = project.folder / "policies"
    rules.mkdir()
    (rules / "no.yaml").write_text('rules: [{name: none, for: tag, deny: action == "create", message: "No new tags."}]')
    assert project.run("plan", "--report", "json=denied.json").code == 0
    shutil.rmtree(rules)
    assert project.run("plan", "--report", "json=reviewed.json").code == 0
    done = project.run("apply", "-y", "--reviewed", "denied.json", "--format", "json")
    assert (done.code, errors(done)[0]["code"], service.tags()) == (5, "more-than-reviewed", ["HELD-1"])
    assert "reviewed-denied" in done.codes
    assert project.run("apply", "-y", "--reviewed", "denied.json", "--reviewed", "reviewed.json").code == 0


def merging(*names: str) -> dict[str, list[Json]]:
    return {"tags": [tag("NEW-1", keywords=["k"], previously=[*names]), *(tag(f"STAYS-{n}") for n in range(20))]}


@pytest.fixture
def merge(project: Project) -> Project:
    """A reviewed rename of OLD-1 and OLD-2 into NEW-1."""
    project.settings("policy: {maxDeletes: {tags: 100%}}")
    project.settle(tags=[tag("OLD-1"), tag("OLD-2"), tag("OLD-3"), *merging()["tags"][1:]])
    project.wants(tags=[*merging("OLD-1", "OLD-2")["tags"], tag("OLD-3")])
    review(project)
    return project


def test_former_names_of_a_tag_mean_the_same_in_any_order(merge: Project) -> None:
    """A renamed tag takes its content from none of its former names."""
    merge.wants(tags=[*merging("OLD-2", "OLD-1")["tags"], tag("OLD-3")])
    since = merge.run("plan", "--since", "plan.json", "--format", "json").document["since"]
    assert (since["different"], since["new"], since["more"]) == ([], [], [])
    assert apply(merge).code == 0
    assert merge.plan().changes == ()


@pytest.mark.parametrize("wanted", [("OLD-1", "OLD-2", "OLD-3"), ("OLD-3", "OLD-1"), ("OLD-1",)])
def test_other_former_names_are_more_than_was_reviewed(
    merge: Project, service: Service, wanted: tuple[str, ...]
) -> None:
    """A former name that is added, replaced or dropped needs a new review."""
    others = {"OLD-1", "OLD-2", "OLD-3"} - {*wanted}
    merge.wants(tags=[*merging(*wanted)["tags"], *map(tag, sorted(others))])
    refused(merge, service)


def test_a_former_name_removed_meanwhile_may_be_missing(merge: Project) -> None:
    """The tag was retired together with its keywords."""
    for name in ("OLD-1", "OLD-2"):
        merge.settings("policy: {tagRemoval: retire, maxDeletes: {tags: 100%}}")
        others = [each for each in ("OLD-1", "OLD-2", "OLD-3") if each != name]
        merge.settle(tags=[*map(tag, others), *merging()["tags"][1:]])
        merge.wants(tags=[*merging("OLD-1", "OLD-2")["tags"], tag("OLD-3")])
        since = merge.run("plan", "--since", "plan.json", "--format", "json").document["since"]
        assert (since["gone"], since["more"]) == ([f"tag/{name}"], [])
        merge.settle(tags=[*map(tag, ("OLD-1", "OLD-2", "OLD-3")), *merging()["tags"][1:]])


def test_the_order_of_a_categorys_former_names_matters(project: Project, service: Service) -> None:
    """The first recorded one is renamed and keeps its tags; the other one is deleted."""
    project.settle(tagCategories=[category("old"), category("older"), category("other")])
    project.wants(tagCategories=[{**category("new"), "previously": ["old", "older"]}, category("other")])
    review(project)
    project.wants(tagCategories=[{**category("new"), "previously": ["older", "old"]}, category("other")])
    refused(project, service, *project.approvals())


SECRETS = [tag(f"SECRET-{number}", visibility="PRIVATE") for number in (1, 2)]
OPENED = [tag("NEW", visibility="PUBLIC", previously=["SECRET-1", "SECRET-2"]), tag("C-1")]


def test_a_rename_that_makes_more_public_than_reviewed_is_refused(project: Project, service: Service) -> None:
    """One of the former names was PUBLIC during the review, and is PRIVATE now."""
    project.settle(tags=[SECRETS[0], tag("SECRET-2", visibility="PUBLIC"), tag("C-1")])
    project.wants(tags=OPENED)
    review(project)
    project.settle(tags=[*SECRETS, tag("C-1")])
    project.wants(tags=OPENED)
    refused(project, service, *project.approvals())
    since = project.run("plan", "--since", "plan.json", "--format", "json").document["since"]
    (different,) = (each for each in since["different"] if each["address"] == "tag/NEW")
    assert different["changes"] == [{"path": ["opens"], "before": None, "after": "SECRET-2"}]


def test_a_reviewed_rename_that_opens_tags_goes_on_after_a_kill(project: Project, service: Service) -> None:
    """The next apply completes it, whether or not the service had executed it."""
    project.settle(tags=[*SECRETS, tag("C-1")])
    project.wants(tags=OPENED)
    review(project)
    command = ("apply", "-y", "--reviewed", "plan.json", *project.approvals())
    project.kill_during(service, "upsertTags", *command)
    done = apply(project)
    assert done.code == 0, done.out
    assert project.plan().changes == ()

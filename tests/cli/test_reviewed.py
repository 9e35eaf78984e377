"""Only what was reviewed is applied: `plan --since` and `apply --reviewed` (docs/reviews.md)."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest

from .program import Ended, Project, category, tag
from .service import Json, Service

pytestmark = pytest.mark.slow

BEFORE = [tag("A-1", description="one"), tag("B-1", keywords=["b"]), tag("C-1")]
WANTED = [tag("A-1", description="two", keywords=["a"]), tag("B-1", keywords=["b", "bb"]), tag("C-1"), tag("D-1")]


def changed(name: str, **fields: object) -> list[Json]:
    """WANTED with other fields for one tag."""
    return [{**each, **fields} if each["name"] == name else each for each in WANTED]


@pytest.fixture
def reviewed(project: Project) -> Project:
    """BEFORE is applied, WANTED is declared, and `plan.json` is its reviewed plan."""
    project.settle(tags=BEFORE)
    project.wants(tags=WANTED)
    review(project)
    return project


def review(project: Project, file: str = "plan.json") -> None:
    done = project.run("plan", "--report", f"json={file}")
    assert done.code == 0, done.err


def apply(project: Project, *more: str, file: str = "plan.json") -> Ended:
    return project.apply_unapproved("--reviewed", file, *more)


def since(project: Project) -> Json:
    """How the plan differs from the reviewed one."""
    compared: Json = project.run("plan", "--since", "plan.json", "--format", "json").document["since"]
    return compared


def messages(done: Ended) -> str:
    return "\n".join(each["message"] for each in done.document["diagnostics"])


def refused(project: Project, service: Service, *more: str) -> Ended:
    """Apply more than was reviewed: nothing is sent."""
    asked = service.asked()
    done = apply(project, *more)
    first = next(each for each in done.document["diagnostics"] if each["severity"] == "error")
    assert (done.code, first["code"]) == (5, "more-than-reviewed"), (done.out, done.err)
    assert service.asked() == asked
    return done


def addresses(done: Ended) -> list[str]:
    """What is more than was reviewed."""
    found = done.document["diagnostics"]
    return [each["address"] for each in found if each["severity"] == "error" and each.get("address")]


def test_what_was_reviewed_is_applied(project: Project) -> None:
    """`apply --reviewed` makes a new plan with another id, and compares it with a saved plan or a report."""
    project.settle(tags=BEFORE)
    project.wants(tags=WANTED)
    assert project.run("plan", "--out", "saved.plan").code == 0
    done = apply(project, file="saved.plan")
    assert (done.code, done.document["status"]) == (0, "complete"), done.out
    assert project.plan().changes == ()
    assert json.loads((project.folder / "saved.plan").read_text())["id"] != done.document["plan"]


def test_what_was_reviewed_may_be_missing_or_applied_in_parts(reviewed: Project) -> None:
    """`--since` lists what is gone, and the rest is applied. Other files and another order mean the same."""
    for name in ("A-1", "D-1"):
        as_before = [each for each in BEFORE if each["name"] == name]
        reviewed.wants(tags=[*as_before, *(each for each in WANTED if each["name"] != name)])
        assert reviewed.run("plan", "--since", "plan.json", "--detailed-exitcode").code == 2
        assert since(reviewed)["gone"] == [f"tag/{name}"]
    assert apply(reviewed).code == 0
    (reviewed.folder / "manifests" / "all.yaml").unlink()
    reviewed.wants("b.yaml", tags=WANTED[::-1])
    assert apply(reviewed).code == 0
    assert reviewed.plan().changes == ()


MORE = {
    "another value": (changed("A-1", description="three"), "tag/A-1"),
    "one more keyword": (changed("B-1", keywords=["b", "bb", "more"]), "tag/B-1"),
    "one more field": (changed("D-1", description="new"), "tag/D-1"),
    "a half of a change": (changed("A-1", keywords=[]), "tag/A-1"),
    "another tag": ([*WANTED, tag("E-1")], "tag/E-1"),
    "one that was not to change": (changed("C-1", description="hm"), "tag/C-1"),
    "one that leaves": ([each for each in WANTED if each["name"] != "C-1"], "tag/C-1"),
}


@pytest.mark.parametrize(("wanted", "address"), MORE.values(), ids=MORE)
def test_more_than_reviewed_is_refused(reviewed: Project, service: Service, wanted: list[Json], address: str) -> None:
    """The refusal names the address, and nothing is sent."""
    reviewed.wants(tags=wanted)
    assert addresses(refused(reviewed, service)) == [address]
    assert reviewed.run("plan", "--since", "plan.json", "--detailed-exitcode").code == 5
    assert [each["address"] for each in since(reviewed)["more"]] == [address]


def test_a_refusal_names_the_run_that_changed_the_resource(reviewed: Project, service: Service) -> None:
    """It also shows the reviewed value and today's."""
    reviewed.settle(tags=[tag("A-1", description="between"), *BEFORE[1:]])
    reviewed.wants(tags=WANTED)
    done = refused(reviewed, service)
    run = reviewed.runs()[1]["id"]
    assert f"last changed by run {run} (apply)" in messages(done)
    assert "reviewed → today: fields.description.before: one → between" in messages(done)


def test_a_reviewed_plan_approves_nothing(project: Project) -> None:
    """A reviewed plan does not open the gate, and a closed gate exits with 4 before what is more exits with 5."""
    project.settle(tags=[tag(f"T-{number}") for number in range(4)])
    project.wants(tags=[tag("T-0")])
    review(project)
    assert apply(project).code == 4
    project.wants(tags=[tag("X-1")])
    assert project.run("plan", "--since", "plan.json", "--detailed-exitcode").code == 4
    project.wants(tags=[tag("T-0")])
    assert apply(project, *project.approvals()).code == 0


def test_the_union_of_reviewed_plans_counts(project: Project) -> None:
    """Two reviewed plans together cover a plan that merges both, even if they change the same tag."""
    project.settle(tags=BEFORE)
    project.wants(tags=[tag("A-1", description="two"), *BEFORE[1:]])
    review(project, "one.json")
    project.wants(tags=[tag("A-1", description="one", keywords=["k"]), *BEFORE[1:], tag("D-1")])
    review(project, "two.json")
    project.wants(tags=[tag("A-1", description="two", keywords=["k"]), *BEFORE[1:], tag("D-1")])
    assert apply(project, file="one.json").code == 5
    assert apply(project, "--reviewed", "two.json", file="one.json").code == 0


def test_a_plan_reviewed_before_the_first_apply_can_be_repeated(project: Project, service: Service) -> None:
    """A plan without a state is accepted again after its first apply was killed."""
    project.wants(tags=WANTED)
    review(project)
    assert json.loads((project.folder / "plan.json").read_text())["basis"]["lineage"] is None
    project.kill_during(service, "upsertTags", "apply", "-y", "--reviewed", "plan.json")
    assert apply(project, "--lock-timeout", "0s").code == 0
    assert project.plan().changes == ()


def test_what_another_run_began_does_not_count_as_reviewed(reviewed: Project, service: Service) -> None:
    """If a run without this review left the row in doubt, the reviewed plan is refused."""
    reviewed.wants(tags=changed("A-1", description="three"))
    reviewed.kill_during(service, "upsertTags", "apply", "-y")
    reviewed.wants(tags=WANTED)
    assert apply(reviewed, "--lock-timeout", "0s").code == 5


OTHERS = {
    "service": ("service", "baseUrl", "http://elsewhere.example", "another service"),
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
    assert name in document[part]
    document[part][name] = value
    file.write_text(json.dumps(document))
    assert said in messages(refused(reviewed, service))


def test_a_missing_reviewed_plan_is_refused_first(reviewed: Project, service: Service) -> None:
    """It is named once, even beside one that is there. To approve or correct anything would only lead to this."""
    asked = service.asked()
    for more in ((), ("--reviewed", "plan.json")):
        told = reviewed.run("apply", "-y", "--reviewed", "nowhere.json", *more)
        assert (told.code, (told.out + told.err).count("nowhere.json")) == (5, 1)
        assert "error[reviewed-missing]: the reviewed plan nowhere.json does not exist" in told.out + told.err
    reviewed.wants(tags=[])
    assert apply(reviewed).code == 4
    assert apply(reviewed, file="nowhere.json").codes == ["reviewed-missing"]
    (reviewed.folder / "manifests" / "broken.yaml").write_text("tags: {")
    assert apply(reviewed, file="nowhere.json").codes == ["reviewed-missing"]
    assert service.asked() == asked


BAD: dict[str, tuple[Callable[[str], str], str]] = {
    "cut off": (lambda text: text[: len(text) // 2], "is not JSON, or incomplete"),
    "another document": (lambda text: '{"format": "syncengine.report/v1"}', "is damaged"),
    "errors": (lambda text: '{"format": "syncengine.diagnostics/v1", "diagnostics": []}', "contains no plan"),
    "an address": (lambda text: text.replace('"tag/D-1"', '"D-1"'), "is damaged"),
    "twice": (lambda text: text.replace('"tag/D-1"', '"tag/A-1"'), "is damaged"),
    "nested": (lambda text: "[" * 100_000, "is damaged"),
    "no basis": (lambda text: text.replace('"basis"', '"other"'), "is damaged"),
}


@pytest.mark.parametrize(("spoil", "said"), BAD.values(), ids=BAD)
def test_a_damaged_file_is_refused(reviewed: Project, service: Service, spoil: Callable[[str], str], said: str) -> None:
    """Both `apply --reviewed` and `plan --since` report it as `plan-file`, and nothing is sent."""
    file = reviewed.folder / "plan.json"
    file.write_text(spoil(file.read_text()))
    asked = service.asked()
    for done in (apply(reviewed), reviewed.run("plan", "--since", "plan.json", "--format", "json")):
        assert (done.code, done.codes, said in messages(done)) == (1, ["plan-file"], True), done.out
    assert service.asked() == asked


def test_a_folder_a_link_and_a_changed_saved_plan_are_no_reviewed_plans(project: Project) -> None:
    """A saved plan is either applied or only compared, and not both."""
    project.wants(tags=WANTED)
    (project.folder / "link.json").symlink_to("nowhere")
    for file in ("manifests", "link.json"):
        done = apply(project, file=file)
        assert (done.code, "is not a file" in messages(done)) == (1, True), done.out
    assert project.run("plan", "--out", "saved.plan").code == 0
    assert project.run("apply", "saved.plan", "--reviewed", "saved.plan").code == 64
    saved = project.folder / "saved.plan"
    saved.write_text(saved.read_text().replace("two", "too"))
    done = apply(project, file="saved.plan")
    assert (done.code, "was changed after it was saved" in messages(done)) == (1, True)


def test_a_plan_that_rules_denied_is_no_reviewed_plan(project: Project, service: Service) -> None:
    """This holds even if the rule has been deleted since, perhaps by the same change."""
    project.settle(tags=[tag("HELD-1")])
    project.wants(tags=[tag("HELD-1"), tag("NEW-1")])
    rules = project.folder / "policies"
    rules.mkdir()
    (rules / "no.yaml").write_text('rules: [{name: none, for: tag, deny: action == "create", message: "No new tags."}]')
    review(project, "denied.json")
    shutil.rmtree(rules)
    review(project)
    done = apply(project, file="denied.json")
    assert (done.code, service.tags()) == (5, ["HELD-1"])
    assert {"more-than-reviewed", "reviewed-denied"} <= {*done.codes}
    assert apply(project, "--reviewed", "denied.json").code == 0


# --- changes that belong together


def house(*tags: Json, gone: bool = False) -> dict[str, list[Json]]:
    """Manifests with these tags and OTHER-1, in categories that stay, and perhaps in one that was to go."""
    return {
        "tagCategories": [*([category("gone")] if gone else []), category("stays")],
        "tags": [*tags, tag("OTHER-1")],
    }


OLD, RENAMED = tag("OLD-1", keywords=["k"]), tag("NEW-1", keywords=["k"], previously=["OLD-1"])
GOES, MOVED = tag("GOES-1", category="gone"), tag("MOVES-1", category="stays")


@pytest.fixture
def renaming(project: Project) -> Project:
    """A reviewed rename, and a category whose delete takes one tag with it after another tag has moved out."""
    project.settings("policy: {maxDeletes: {tags: 100%, keywords: 100%}}")
    project.settle(**house(OLD, tag("MOVES-1", category="gone"), GOES, gone=True))
    project.wants(**house(RENAMED, MOVED))
    review(project)
    return project


def test_a_rename_or_a_category_delete_may_be_missing_as_a_whole(renaming: Project, service: Service) -> None:
    """Selecting the move alone is refused; leaving out the rename, and selecting it later, is allowed."""
    refused(renaming, service, "--target", "tag/MOVES-1")
    renaming.wants(**house(OLD, MOVED))
    assert (done := apply(renaming, *renaming.approvals())).code == 0, messages(done)
    renaming.wants(**house(RENAMED, MOVED))
    assert apply(renaming, "--target", "tag/NEW-1", *renaming.approvals()).code == 0


NAMES = ("OLD-1", "OLD-2", "OLD-3")
STAYS = [tag(f"STAYS-{n}") for n in range(20)]


def merging(*names: str) -> list[Json]:
    """Tags of which NEW-1 has these former names; the other old ones stay."""
    return [tag("NEW-1", keywords=["k"], previously=[*names]), *STAYS, *map(tag, sorted({*NAMES} - {*names}))]


@pytest.fixture
def merge(project: Project) -> Project:
    """A reviewed rename of OLD-1 and OLD-2 into NEW-1."""
    project.settings("policy: {maxDeletes: {tags: 100%}}")
    project.settle(tags=[*map(tag, NAMES), *STAYS])
    project.wants(tags=merging("OLD-1", "OLD-2"))
    review(project)
    return project


def test_former_names_of_a_tag_mean_the_same_in_any_order(merge: Project, service: Service) -> None:
    """A renamed tag takes its content from none of them. One that is added, replaced or dropped needs a new review."""
    for wanted in (NAMES, ("OLD-3", "OLD-1"), ("OLD-1",)):
        merge.wants(tags=merging(*wanted))
        refused(merge, service)
    merge.wants(tags=merging("OLD-2", "OLD-1"))
    compared = since(merge)
    assert (compared["different"], compared["new"], compared["more"]) == ([], [], [])
    assert apply(merge).code == 0
    assert merge.plan().changes == ()


def test_a_former_name_removed_meanwhile_may_be_missing(merge: Project) -> None:
    """The tag was retired together with its keywords."""
    merge.settings("policy: {tagRemoval: retire, maxDeletes: {tags: 100%}}")
    for name in ("OLD-1", "OLD-2"):
        merge.settle(tags=[*map(tag, sorted({*NAMES} - {name})), *STAYS])
        merge.wants(tags=merging("OLD-1", "OLD-2"))
        compared = since(merge)
        assert (compared["gone"], compared["more"]) == ([f"tag/{name}"], [])
        merge.settle(tags=[*map(tag, NAMES), *STAYS])


def test_the_order_of_a_categorys_former_names_matters(project: Project, service: Service) -> None:
    """The first recorded one is renamed and keeps its tags; the other one is deleted."""
    project.settle(tagCategories=[category("old"), category("older"), category("other")])
    project.wants(tagCategories=[category("new", previously=["old", "older"]), category("other")])
    review(project)
    project.wants(tagCategories=[category("new", previously=["older", "old"]), category("other")])
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
    (different,) = (each for each in since(project)["different"] if each["address"] == "tag/NEW")
    assert different["changes"] == [{"path": ["opens"], "before": None, "after": "SECRET-2"}]


# --- live sources, and what `plan --since` shows


def test_rows_of_live_sources_need_no_review_but_their_removals_do(project: Project, service: Service) -> None:
    """Rows of a database are in no pull request, so their changes are allowed, but a removal is refused."""
    project.settings(
        "sources: {crm: {sql: 'sqlite:///crm.db'}}",
        "policy: {tagRemoval: retire, maxDeletes: {tags: 100%, keywords: 100%}}",
    )
    (project.folder / "manifests").mkdir()
    query = "{source: crm, query: 'SELECT name, words FROM matters'}"
    template = "{name: '{{ row.name }}', keywords: ['{{ row.words }}']}"
    text = f"generate:\n  - forEach: {{sql: {query}}}\n    tags: [{template}]\n"
    (project.folder / "manifests" / "live.yaml").write_text(text)

    def live(**rows: str) -> None:
        with closing(sqlite3.connect(project.folder / "crm.db")) as database, database:
            database.execute("CREATE TABLE IF NOT EXISTS matters (name TEXT, words TEXT)")
            database.execute("DELETE FROM matters")
            database.executemany("INSERT INTO matters VALUES (?, ?)", rows.items())

    live(L1="a", L2="b", L3="c")
    assert project.apply().code == 0
    live(L1="a", L2="bb", L3="c", L4="d")
    review(project)
    live(L1="aa", L2="bbb", L3="c", L4="d", L5="e")
    assert project.run("plan", "--since", "plan.json", "--detailed-exitcode").code == 2
    assert since(project)["new"] == ["tag/L1", "tag/L5"]
    assert apply(project).code == 0
    live(L1="aa", L2="bbb", L4="d", L5="e")
    assert addresses(refused(project, service)) == ["tag/L3"]


def test_the_comparison_is_shown_in_every_format(reviewed: Project) -> None:
    """It counts new, different, gone and equal changes, and shows differing values."""
    reviewed.wants(tags=[tag("A-1", description="three", keywords=["a"]), *BEFORE[1:], tag("D-1"), tag("E-1")])
    compared = since(reviewed)
    assert compared["plan"] == json.loads((reviewed.folder / "plan.json").read_text())["id"]
    assert (compared["new"], compared["gone"], compared["same"]) == (["tag/E-1"], ["tag/B-1"], 1)
    path = {"path": ["fields", "description", "after"], "before": "two", "after": "three"}
    assert compared["different"] == [{"address": "tag/A-1", "changes": [path]}]
    for format in ("text", "markdown", "html"):
        out = reviewed.run("plan", "--since", "plan.json", "--format", format).out
        assert "1 new, 1 different, 1 gone, 1 the same" in out, format
        assert "two → three" in out, format
    assert "since" not in reviewed.run("plan", "--format", "json").document

"""Saved plans: private, shown in every format, applied once, and valid only for their state; none may be forged."""

import json
import os
import shlex
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest
from msgspec.structs import replace

from syncengine.apply import guards
from syncengine.content import sha256_of, value_changes
from syncengine.errors import SyncengineError
from syncengine.plan.gate import Gate
from syncengine.plan.model import Plan, PlanInputs
from syncengine.plan.planner import options_of
from syncengine.plan.request import PlanRequest
from syncengine.plan.saved import CHANGES, DIGEST, END, EXECUTION, ID, NO_CALL, SEAL, load, planned_again, save
from syncengine.project.model import Project as Settings
from syncengine.render.documents import SHOWN
from syncengine.resource import Key
from syncengine.state.store import State, open_state
from tests.support.once import MEMORY
from tests.support.profiles import thinned

from .conftest import Estate
from .program import Ended, Project, category, ended, tag
from .service import Service

pytestmark = pytest.mark.slow


@pytest.fixture
def saved(project: Project) -> Project:
    """A project whose manifest changes TOUCHED-1; `saved.plan` is its saved plan."""
    project.settle(tags=[tag("TOUCHED-1"), tag("OTHER-1")])
    project.wants(tags=[tag("TOUCHED-1", description="planned"), tag("OTHER-1")])
    assert project.run("plan", "--out", "saved.plan").code == 0
    return project


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def refused(project: Project, service: Service) -> tuple[list[str], str]:
    """The codes and the first message with which the saved plan is refused; nothing is sent."""
    asked = service.asked()
    done = project.run("apply", "saved.plan", "--format", "json")
    assert (done.code, service.asked()) == (5, asked), done.out
    return done.codes, done.document["diagnostics"][0]["message"]


def test_a_saved_plan_is_private_and_shown_in_every_format_like_a_printed_one(saved: Project) -> None:
    """`plan --format json` prints the document that `plan --out` saves; only a saved one can be applied."""
    assert mode(saved.folder / "saved.plan") == 0o600
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:  # a file under /dev/shm is no stream
        assert saved.run("plan", "--out", f"{folder}/kept.plan").code == 0
        assert mode(Path(folder, "kept.plan")) == 0o600
    assert saved.run("show", "saved.plan", "--format", "json").document["summary"]["update"] == 1
    (saved.folder / "printed.json").write_text(saved.run("plan", "--format", "json").out)
    for format in ("text", "markdown", "html"):
        done = [
            saved.run("show", file, "--format", format, "--target", "tag/*") for file in ("saved.plan", "printed.json")
        ]
        assert [(each.code, each.err) for each in done] == [(0, "")] * 2, format
        assert done[0].out.count("TOUCHED-1") == done[1].out.count("TOUCHED-1") != 0, format
    printed = saved.run("apply", "printed.json")
    assert (printed.code, "was printed, not saved" in printed.err) == (1, True)
    (saved.folder / "report.json").write_text(saved.run("apply", "-y", "--format", "json").out)
    report = saved.run("show", "report.json")
    assert (report.code, "report.json is not a plan, but the report of an apply" in report.err) == (1, True)


def test_a_plan_can_be_written_to_a_pipe(project: Project) -> None:
    """A named pipe or stdout is written to, and not replaced by a file."""
    project.wants(tags=[tag("NEW-1")])
    os.mkfifo(project.folder / "pipe")
    running = project.fork("plan", "--out", "pipe")
    read = json.loads((project.folder / "pipe").read_bytes())
    assert ended(running).code == 0
    assert (read["format"], (project.folder / "pipe").is_fifo()) == ("syncengine.plan/v1", True)
    assert sorted(path.name for path in project.folder.iterdir() if "plan" in path.name) == []
    shown = project.run("plan", "--out", "/dev/stdout", "--report", "json=report.json", "-q")
    assert (shown.code, '"execution"' in shown.out, mode(project.folder / "report.json")) == (0, True, 0o644)


def test_the_command_that_approves_a_shown_plan_works(project: Project) -> None:
    """A saved plan is applied by its file; one that was printed cannot be, so that the command plans again."""
    project.settle(tags=[tag("OPENED-1", visibility="PRIVATE")])
    project.wants(tags=[tag("OPENED-1", visibility="PUBLIC")])
    (project.folder / "printed.json").write_text(project.run("plan", "--out", "saved.plan", "--format", "json").out)
    for file, code in {"printed.json": 0, "saved.plan": 5}.items():  # the second one is stale by then
        (line,) = (each for each in project.run("show", file).out.splitlines() if "--approve-deletes" in each)
        words = shlex.split(line)
        assert (words[:2], file in words) == (["syncengine", "apply"], file == "saved.plan")
        assert project.run(*words[1:], "-y").code == code


WRITES = {
    "a plan": ("plan", "--out", "{place}"),
    "a report": ("plan", "--report", "json={place}"),
    "a report of an apply": ("apply", "-y", "--report", "json={place}"),
    "an export": ("state", "export", "--out", "{place}"),
    "manifests": ("fmt", "{place}"),
}


@pytest.mark.parametrize("command", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("is_folder", [False, True], ids=["a link", "a folder that is a link"])
def test_no_output_is_written_through_a_link(project: Project, command: tuple[str, ...], is_folder: bool) -> None:
    """A link may come from the repository, so it does not show where the user wants to write."""
    project.wants(tags=[tag("NEW-1")])
    place = "manifests/linked/kept.yaml" if is_folder else "manifests/linked.yaml"
    kept = project.folder / "elsewhere" / "kept.yaml"
    kept.parent.mkdir()
    kept.write_text("tags:   []\n")
    link = project.folder / "manifests" / ("linked" if is_folder else "linked.yaml")
    link.symlink_to("../elsewhere" if is_folder else "../elsewhere/kept.yaml")
    done = project.run(*(word.format(place=place) for word in command))
    assert done.code in (1, 8), (done.out, done.err)
    assert "is a symbolic link" in done.err, done.err
    assert ("nothing was applied" in done.err) == (command[0] == "apply"), done.err
    assert not (project.folder / ".syncengine" / "state.db").exists()
    assert (kept.read_text(), link.is_symlink()) == ("tags:   []\n", True)
    assert [path.name for path in kept.parent.iterdir()] == ["kept.yaml"]


def test_neither_init_nor_schema_follows_a_link(project: Project) -> None:
    (project.folder / "syncengine.yaml").unlink()
    (project.folder / "kept").write_text("mine\n")
    (project.folder / ".gitignore").symlink_to("kept")
    assert project.run("init").code == 1
    assert (project.folder / "kept").read_text() == "mine\n"
    (project.folder / ".gitignore").unlink()
    (project.folder / "kept").unlink()
    (project.folder / "kept").mkdir()
    (project.folder / "schemas").symlink_to("kept")
    assert (project.run("init").code, project.run("schema", "-o", "schemas").code) == (1, 1)
    assert list((project.folder / "kept").iterdir()) == []


def test_a_saved_plan_is_applied_once_and_reads_no_manifest(saved: Project, service: Service) -> None:
    """`apply` asks no question, and the second apply is refused (docs/planning.md 6)."""
    saved.wants(tags=[{"broken": True}])
    assert saved.run("apply", "saved.plan").code == 0
    assert [held.get("description") for held in service.holds()["tags"]] == [None, "planned"]
    assert refused(saved, service)[0] == ["plan-used"]
    assert saved.run("show", "saved.plan").code == 0


def test_a_saved_plan_that_the_service_refused_is_used_up(saved: Project, service: Service) -> None:
    """The report does not advise to repeat the command, which would be refused: only a new plan goes on."""
    service.fault("upsertTags", status=404)
    done = saved.run("apply", "saved.plan")
    assert done.code == 3
    assert "Plan again to see what remains" in done.out
    assert "run the command again" not in done.out
    assert refused(saved, service)[0] == ["plan-used"]


def test_a_saved_plan_is_stale_once_what_it_touches_has_changed(saved: Project, service: Service) -> None:
    """The message names the resource, the change and its run, and nothing is sent."""
    saved.settle(tags=[tag("TOUCHED-1", description="overtaken"), tag("OTHER-1")])
    run = saved.runs()[0]["id"]
    codes, message = refused(saved, service)
    assert codes == ["stale-plan"]
    assert "tag/TOUCHED-1: it changed since the plan was made (fields.description: nothing → overtaken" in message
    assert f"last changed by run {run} (apply)" in message


@pytest.mark.parametrize("way", ["deleted", "refused"])
def test_a_saved_plan_is_stale_without_the_id_of_a_category(project: Project, service: Service, way: str) -> None:
    """The category was deleted, or the service has refused its id, so that only a new plan asks for it again."""
    needed = [{"externalId": "needed"}]
    project.settle(tagCategories=needed, tags=[tag("OTHER-1")])
    project.wants(tagCategories=needed, tags=[tag("OTHER-1"), tag("NEW-1", category="needed")])
    assert project.run("plan", "--out", "saved.plan").code == 0
    if way == "deleted":
        project.settle(tags=[tag("OTHER-1")])
    else:
        service.fault("upsertTags", status=404)
        project.wants(tagCategories=needed, tags=[tag("OTHER-1"), tag("REFUSED-1", category="needed")])
        assert project.apply().code == 3
    codes, message = refused(project, service)
    assert codes == ["stale-plan"]
    assert "category/needed: its id, which tags need, is no longer known (last changed by run" in message
    project.settle(tagCategories=needed, tags=[tag("OTHER-1"), tag("NEW-1", category="needed")])


@pytest.mark.parametrize("flag", [("--target", "tag/*"), ("--exclude", "tag/*"), ("--no-delete",), ("--reassert",)])
def test_no_selection_goes_with_a_saved_plan(saved: Project, flag: tuple[str, ...]) -> None:
    """A selection would apply something other than the reviewed plan."""
    assert saved.run("apply", "saved.plan", *flag).code == 64


NO_JSON = "is not JSON, or incomplete"
SPOILT: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "edited": (lambda whole: whole.replace(b"planned", b"PLANNED"), "was changed after it was saved"),
    "with CRLF": (lambda whole: whole.replace(b"\n", b"\r\n"), ""),
    "with no line end at all": (lambda whole: whole.replace(b'"}\n', b'"}'), ""),
    "cut early": (lambda whole: whole[:40], NO_JSON),
    "cut before what is executed": (lambda whole: whole[: whole.index(b'"execution"')], NO_JSON),
    "cut within what is executed": (lambda whole: whole[: whole.index(b'"execution"') + 500], NO_JSON),
    "cut at its end": (lambda whole: whole[:-3], NO_JSON),
}
"""How a file is changed, and what `show` says then: nothing if it is the same document with other line ends."""


@pytest.mark.parametrize(("spoil", "says"), SPOILT.values(), ids=SPOILT)
def test_a_spoilt_plan_is_refused(saved: Project, service: Service, spoil: Callable[[bytes], bytes], says: str) -> None:
    """By hand, by a transfer in text mode, or by an upload that ended early."""
    file, asked = saved.folder / "saved.plan", service.asked()
    file.write_bytes(spoil(file.read_bytes()))
    done = saved.run("apply", "saved.plan")
    assert (done.code, "was changed after it was saved: plan again" in done.err) == (1, True), done.err
    assert service.asked() == asked
    shown = saved.run("show", "saved.plan")
    assert (shown.code, says in shown.err) == (int(bool(says)), True), shown.err


# --- forged with a valid digest: such a plan does what it shows, or is refused


FAMILIES = (
    ("active", "released", "retired", "deleted"),
    ("+", "~", "-", "x", "o"),
    ("applies", "create-only", "ignored", "kept"),
    ("tags", "keyword deletes", "category deletes"),
    ("upsertTags", "deleteTag"),
)
"""Groups of texts that are valid in the same place; a forgery replaces one by another."""


class Listed(msgspec.Struct, frozen=True):
    """The executed part of a saved plan as JSON values; its mapping by key is a list of pairs."""

    plan: Plan
    prior: tuple[tuple[Key, str], ...]

    @classmethod
    def of(cls, plan: Plan) -> Self:
        bare = replace(plan, stages=(), records=(), wholes={}, prior={})
        sweep = bare.sweep and replace(bare.sweep, uploads=(), complete=NO_CALL, needs=())
        return cls(replace(bare, sweep=sweep), tuple(plan.prior.items()))

    def restored(self) -> Plan:
        return replace(self.plan, prior=dict(self.prior))


def rewritten(value: Any) -> Iterator[Any]:
    """Yield the JSON value with one change each. A leaf is replaced, a list member or mapping key is dropped, or a list
    is reversed or doubled."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield {name: each for name, each in value.items() if name != key}
            for other in rewritten(inner):
                yield {**value, key: other}
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield value[:index] + value[index + 1 :]
            for other in rewritten(inner):
                yield [*value[:index], other, *value[index + 1 :]]
        yield value[::-1] if value != value[::-1] else [*value, *value] or [None]
    else:
        yield from (other for other in others(value) if (type(other), other) != (type(value), value))


def others(value: Any) -> Iterator[Any]:
    yield None
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1
    elif isinstance(value, str):
        yield value + "x"
        yield from next((family for family in FAMILIES if value in family), ())
    else:
        yield "tags"
        yield ["tag", "GAINS-1"]


def sent_and_shown(plan: Plan) -> Any:
    """Everything a plan does and shows, without places, ids, times and texts that have no effect. So is `protect` left
    out: lifting it removes nothing by itself. The order within a batch has no effect either."""

    def in_order(value: Any) -> Any:
        if isinstance(value, dict):
            return {n: in_order(inner) for n, inner in value.items() if n not in ("source", "reason", "protect")}
        return sorted(map(in_order, value), key=str) if isinstance(value, (list, tuple)) else value

    bare = replace(plan, basis=replace(plan.basis, id=""), prior={}, wholes={}, inputs=PlanInputs())
    said = msgspec.to_builtins(bare)
    harmless = {"notes", "diagnostics", "basis", "is_whole", "sources", "prior", "wholes", "gate"}
    kept = {name: part for name, part in said.items() if name not in harmless}
    kept["summary"] = {name: count for name, count in kept["summary"].items() if name not in ("unchanged", "kept")}
    records = [{**record, "protect": None, "source": None} for record in kept["records"]]
    kept["records"] = [r for r in records if any(part for name, part in r.items() if name != "key")]
    kept["wholes"] = [*map(msgspec.to_builtins, plan.wholes.items())]
    kept["rows"] = [*map(str, plan.prior)]
    return in_order(kept)


def is_accepted(settings: Settings, file: Path, state: State) -> Plan | None:
    """The plan in a file, if `apply` would start to execute it."""
    options = options_of(settings, PlanRequest("apply"), state.facts())
    try:
        plan = load(file, SHOWN)
        guards.refuse_elsewhere(plan, state, settings.base_url())
        guards.refuse_changed(plan, state)
        again = guards.planned_again(plan, state, deletes_tags=options.rules.deletes_tags)
        return guards.with_gate_of_today(plan, again, state, options, 0.0)
    except SyncengineError as error:
        assert error.code in ("plan-file", "plan-inconsistent", "stale-plan", "other-service"), error
        return None


def asking(plan: Plan) -> set[str]:
    """The units that need an approval."""
    return {f"{unit.kind} {unit.name}" for unit in plan.gate.units if unit.is_open}


@pytest.fixture
def planned(estate: Estate) -> Plan:
    """A plan with every operation, including a rename, a cascade and a sweep."""
    plan = estate.project.plan()
    assert {change.action.word for change in plan.changes} == {"create", "update", "delete", "retire", "forget"}
    assert plan.gate.tripped
    return plan


def test_a_forged_execution_is_refused_or_harmless(estate: Estate, planned: Plan, tmp_path: Path) -> None:
    """The forger recomputes digest, id and document. A forgery that is accepted still does and shows the same."""
    file, settings = tmp_path / "forged.plan", estate.project.loaded()
    tried = taken = 0
    harm: list[str] = []
    with open_state(settings.state, write=False) as state:
        written, read = save(planned, SHOWN, file), load(file, SHOWN)
        assert (read.id, read.prior, Listed.of(read)) == (written.id, written.prior, Listed.of(written))
        honest = is_accepted(settings, file, state)
        assert honest, "the plan itself"
        true, asks = sent_and_shown(honest), asking(honest)
        for forged in thinned(rewritten(json.loads(msgspec.json.encode(Listed.of(planned)))), 4):
            try:
                plan = msgspec.convert(forged, Listed).restored()
                save(plan, SHOWN, file)
            except (msgspec.ValidationError, TypeError, AttributeError):
                continue  # not a valid execution
            tried += 1
            if (accepted := is_accepted(settings, file, state)) is not None:
                taken += 1
                harm += map(str, value_changes(true, sent_and_shown(accepted)))
                harm += [f"{unit} no longer asks" for unit in asks - asking(accepted)]
    assert harm == [], "\n".join(harm)
    assert tried > 250
    assert tried - taken > 125, "accepted forgeries may only change places, texts and the saved gate"


def test_a_forged_document_of_a_plan_is_refused(estate: Estate, planned: Plan, tmp_path: Path) -> None:
    """A plan whose readable document differs from its executed part is refused, even with the right digest."""
    file = tmp_path / "forged.plan"
    save(planned, SHOWN, file)
    document = json.loads(file.read_bytes())
    execution = file.read_bytes().partition(EXECUTION)[2].partition(ID)[0]
    shown = {name: part for name, part in document.items() if name not in ("execution", "id", "digest")}
    assert file.read_bytes() == as_file(shown, execution, planned.id)
    settings, forgeries = estate.project.loaded(), [*thinned(rewritten(shown), 4)]
    assert len(forgeries) > 75
    with open_state(settings.state, write=False) as state:
        for forged in forgeries:
            file.write_bytes(as_file(forged, execution, planned.id))
            assert is_accepted(settings, file, state) is None, forged


def test_a_plan_with_a_missing_doubled_or_moved_line_is_refused(estate: Estate, planned: Plan, tmp_path: Path) -> None:
    """Even if its id and digest are right."""
    file = tmp_path / "forged.plan"
    save(planned, SHOWN, file)
    shown, _, rest = file.read_bytes().partition(EXECUTION)
    lines = rest.partition(ID)[0].split(b",\n")
    settings = estate.project.loaded()
    with open_state(settings.state, write=False) as state:
        for number, line in enumerate(lines):
            before, after = lines[:number], lines[number + 1 :]
            for forged in ([*before, *after], [*before, line, line, *after], [*before, *after[:1], line, *after[1:]]):
                file.write_bytes(sealed(shown + EXECUTION + b",\n".join(forged), planned.id))
                accepted = is_accepted(settings, file, state)
                assert accepted is None or forged == lines, line
    assert len(lines) == 5, "the head, changes, resources, lines and rows"


def as_file(shown: Any, execution: bytes, name: str) -> bytes:
    """A plan file with this document and this execution, and with the right id and digest."""

    def dumped(value: Any) -> bytes:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()

    lines = shown.get("changes")
    head = dumped({name: part for name, part in shown.items() if name != "changes" or not isinstance(part, list)})
    changes = CHANGES + b",\n".join(map(dumped, lines)) if isinstance(lines, list) else b""
    content = head[:-1] + changes + EXECUTION.removeprefix(b"" if changes else b"\n]") + execution
    return sealed(content, name)


def sealed(content: bytes, name: str) -> bytes:
    named = content + ID + f'"{name}-{sha256_of(content)[:SEAL]}"'.encode()
    return named + DIGEST + sha256_of(named).encode() + END


NAMES = [f"T-{number:02}" for number in range(20)]


@pytest.fixture
def emptied(project: Project) -> Project:
    """A project whose manifest retires 19 of 20 tags."""
    project.settings("policy: {tagRemoval: retire}")
    project.settle(tags=[*map(tag, NAMES)])
    project.wants(tags=[tag("T-00")])
    return project


def forged(project: Project, plan: Plan, approval: str | None) -> Ended:
    """The result of applying this plan from a file."""
    save(plan, SHOWN, project.folder / "forged.plan")
    given = ("--approve-deletes", approval) if approval else ()
    return project.run("apply", "forged.plan", "--format", "json", *given)


def assert_inconsistent(project: Project, service: Service, *plans: Plan) -> None:
    """Each of these forgeries is refused even with its approval, and nothing is sent."""
    asked = service.asked()
    for plan in plans:
        done = forged(project, plan, plan.gate.approve)
        assert (done.code, done.codes[-1]) == (5, "plan-inconsistent"), done.out
    assert service.asked() == asked


def test_a_forged_gate_is_computed_again(emptied: Project, service: Service) -> None:
    """Whatever gate the file has, `apply` asks for the approval that the removals need, and sends nothing."""
    plan = emptied.plan()
    asked = service.asked()
    fewer = tuple(replace(unit, count=1, lost=(("tags", 1),)) for unit in plan.gate.units)
    mild = tuple(reason.replace("19 of 20", "1 of 20") for reason in plan.gate.reasons)
    for gate in (
        Gate(),
        replace(plan.gate, reasons=mild),
        replace(plan.gate, units=fewer),
        replace(plan.gate, whole="1@0"),
        replace(plan.gate, approve="1@0"),
    ):
        for approval in (None, f"1@{20 * '0'}"):
            done = forged(emptied, replace(plan, gate=gate), approval)
            assert (done.code, done.codes[-1]) == (4, "gate"), done.out
            assert str(plan.gate.approve) in done.document["diagnostics"][-1]["message"]
    assert service.asked() == asked


def test_the_inputs_of_one_plan_do_not_go_with_the_changes_of_another(project: Project, service: Service) -> None:
    project.settle(tags=[*map(tag, NAMES)])
    project.wants(tags=[tag(name, description="new") for name in NAMES])
    large = project.plan()
    project.wants(tags=[tag(NAMES[0], description="new"), *map(tag, NAMES[1:])])
    small = project.plan()
    more = replace(small, inputs=large.inputs, prior=large.prior)
    mixed = (more, replace(more, summary=large.summary), replace(large, inputs=small.inputs), replace(large, prior={}))
    assert_inconsistent(project, service, *mixed, replace(small, inputs=PlanInputs()))


def test_a_saved_plan_is_held_to_the_stricter_of_two_limits(emptied: Project, service: Service) -> None:
    """The limits of the plan and those of the project file now both apply; the approval that is named is enough."""
    assert emptied.run("plan", "--out", "saved.plan").code == 0
    emptied.settings("policy: {tagRemoval: retire, maxDeletes: {tags: 100%}}")
    assert emptied.run("apply", "saved.plan").code == 4
    emptied.wants(tags=[*map(tag, NAMES[:18])])
    assert emptied.run("plan", "--out", "saved.plan").code == 0
    emptied.settings("policy: {tagRemoval: retire, maxDeletes: {tags: 1}}")
    done = emptied.run("apply", "saved.plan", "--format", "json")
    assert (done.code, done.codes, len(service.tags())) == (4, ["limit-loosened", "gate"], 20)
    approve = done.document["diagnostics"][-1]["message"].rpartition("--approve-deletes ")[2].rstrip(")")
    assert emptied.run("apply", "saved.plan", "--approve-deletes", approve).code == 0
    assert [row["status"] for row in emptied.rows().values()].count("retired") == 2


def test_a_private_tag_that_is_left_out_of_a_rename_is_not_opened(project: Project, service: Service) -> None:
    secrets = [tag(f"SECRET-{number}", visibility="PRIVATE") for number in (1, 2)]
    project.settle(tags=[*secrets, tag("OTHER")])
    project.wants(tags=[tag("NEW", previously=["SECRET-1", "SECRET-2"], visibility="PUBLIC"), tag("OTHER")])
    plan = project.plan()
    (change,) = (change for change in plan.changes if change.key.name == "NEW")
    assert change.opens == ("SECRET-1", "SECRET-2")
    for opens in (change.opens[:1], ()):
        hidden = tuple(replace(each, opens=opens if each is change else ()) for each in plan.changes)
        assert_inconsistent(project, service, replace(plan, changes=hidden))
    assert project.run("plan", "--out", "true.plan").code == 0
    shown = project.run("apply", "true.plan").out
    assert "tag/NEW made public (2 tags were PRIVATE)" in shown
    assert 'makes public: "SECRET-1", "SECRET-2"' in shown
    assert project.run("apply", "true.plan", "--approve-deletes", str(plan.gate.approve)).code == 0
    assert "NEW" in service.tags()


def test_a_member_that_no_change_shows_keeps_its_category(project: Project, service: Service) -> None:
    inside = [tag("IN-1", category="c"), tag("IN-2", category="c")]
    project.settle(tagCategories=[category("c"), category("d")], tags=inside)
    project.wants(tagCategories=[category("d")], tags=[tag("IN-1", category="d")])
    plan = project.plan()
    unseen = tuple(change for change in plan.changes if change.cascade is None)
    here = tuple(each for each in plan.inputs.desired if each.key.name != "IN-1")
    stays = replace(plan, inputs=replace(plan.inputs, desired=here))
    moved = tuple(change for change in plan.changes if change.key.name != "IN-1")
    assert_inconsistent(project, service, replace(plan, changes=unseen), stays, replace(stays, changes=moved))


def test_a_saved_plan_is_checked_whatever_the_order_of_rows(project: Project) -> None:
    """A database may return rows in any order, as PostgreSQL does after an update."""
    inside = [tag(name, category="c") for name in ("M-1", "M-2", "IN-1", "IN-2")]
    project.settle(tagCategories=[category("c"), category("d")], tags=inside)
    project.wants(tagCategories=[category("d")], tags=[tag("M-1"), tag("M-2")])
    plan = project.plan()
    assert len([change for change in plan.changes if change.cascade is not None]) == 2
    with open_state(project.loaded().state, write=False) as state:
        rows = {row.key: row for row in state.rows()}
    for ordered in (rows, dict(reversed(rows.items()))):
        again = planned_again(plan, ordered, is_begun=False, owns=False, deletes_tags=False)
        assert [each.key for each in again.plan.changes] == [each.key for each in plan.changes]


def test_an_unrelated_apply_does_not_invalidate_a_saved_plan(project: Project, service: Service) -> None:
    """The saved approval stays valid, although the share of the removals has changed since."""
    project.settle(tagCategories=[category("only")], tags=[*map(tag, NAMES)])
    project.wants(tags=[*map(tag, NAMES[:10])])
    made = project.plan()
    reasons = {reason.partition(" (")[0] for reason in made.gate.reasons}
    assert reasons == {"1 of 1 category deleted", "10 of 20 tags forgotten, retired or deleted"}
    assert project.run("plan", "--out", "saved.plan").code == 0
    project.wants(tagCategories=[category("only"), category("other")], tags=[*map(tag, NAMES), tag("OTHER")])
    assert project.run("apply", "-y").code == 0
    done = project.run("apply", "saved.plan", "--format", "json", "--approve-deletes", str(made.gate.approve))
    assert (done.code, done.document["status"]) == (0, "complete"), done.document["diagnostics"]

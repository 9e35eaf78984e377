"""Check that today's plan does no more than reviewed plans. Pure (docs/reviews.md).

Changes are compared by meaning: action, values before and after, keywords, metadata, cascade, former names, and the
cause of a removal. Ids, times, lines and order do not count. A change may do less today than the reviewed one only if
the missing part is recorded as done.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from msgspec import Struct

from syncengine.content import ValueChange, value_changes
from syncengine.plan.aim import RemovalCause
from syncengine.plan.diff import OPENED, OUTSIDE, WRITES, Action, Change, is_same
from syncengine.plan.model import Excess, Plan, Since
from syncengine.project.references import canonical_url
from syncengine.resource import LET_GO, Body, Key, Kind, Recorded, Status
from syncengine.state.records import GONE, STRENGTH

NOTHING = Body()
AGAIN = "a run left it in doubt, so it would be sent again unchanged: repeat that run first, without --reviewed"


class ReviewedPlan(Struct, frozen=True):
    """A reviewed plan, read from `file`.

    `lineage` is `None` when the plan was made before the first apply. `sweep` are the codes that its sweep showed.
    `is_denied` means that rules deny the plan, so that nobody may apply it whatever the rules are today.
    """

    file: str
    plan: str
    base_url: str
    team: str | None
    lineage: str | None
    environment: str | None
    changes: Mapping[Key, Change]
    sweep: frozenset[str] | None = None
    is_denied: bool = False


class Past(Protocol):  # `state` is a database, which renderers, who import this module, must not import
    """The part of a recorded state that a comparison with reviewed plans reads."""

    def rows(self, keys: Iterable[Key]) -> Mapping[Key, Recorded]: ...

    def plans_of(self, runs: Iterable[str | None]) -> Mapping[str, frozenset[str]]:
        """Return the plans of each run: the plan that it applied, and those that were reviewed for it."""
        ...

    def last_run(self, key: Key) -> tuple[str | None, bool]:
        """Return the last run that wrote the row `key` or put it in doubt, and whether by deleting a keyword."""
        ...


def since_review(plan: Plan, reviewed: Sequence[ReviewedPlan], past: Past, is_live: Callable[[str], bool]) -> Since:
    """Compare today's plan with all reviewed plans together. `is_live` tells databases and services from files."""
    # What belongs to the deletion of a category is compared with it.
    kept_out = {change.key for change in plan.changes if is_protective(change)}
    today = {change.key: change for change in plan.changes if change.key not in kept_out}
    excess = [Excess(why) for each in reviewed for why in _other_basis(plan, each)]
    unlike, new, different = [], list[str](), dict[str, tuple[ValueChange, ...]]()
    for key, change in today.items():
        same = (each.changes[key] for each in reviewed if key in each.changes)
        if not any(_is_as_reviewed(change, other) for other in same):
            unlike.append(change)
    # Only what was reviewed, or changes nothing, may be the rest of a plan that a run began.
    repeats = [c for c in unlike if _is_repeat(c) or any(c.key in each.changes for each in reviewed)]
    before = [each.changes[c.key] for c in repeats for each in reviewed if c.key in each.changes]
    formers = [former for change in (*repeats, *before) for former in change.formers]
    rows = past.rows([*(change.key for change in repeats), *formers]) if repeats else {}
    plans_of = past.plans_of(row.run for row in rows.values())
    written_by = {key: {row.plan, *plans_of.get(row.run or "", ())} for key, row in rows.items()}
    covered = 0
    for change in unlike:
        row, begun = rows.get(change.key), written_by.get(change.key, set())
        candidates = list(_candidates(change, reviewed, rows, written_by))
        is_rest = bool(candidates) and _is_covered(change, candidates, row)
        if is_rest or (row is not None and _is_begun(change, row, candidates, begun, reviewed, past)):
            covered += 1
        else:
            address, data = str(change.key), change.source.data if change.source else None
            why = AGAIN if _is_repeat(change) else f"{change.action.word} was not reviewed"
            values: tuple[ValueChange, ...] = ()
            if candidates:
                why = f"{change.action.word} differs from the reviewed change"
                values = different[address] = value_changes(shown(candidates[-1].change), shown(change))
            else:
                new.append(address)
            # Nobody reviews live data of a database or service, unless it removes something.
            if data is None or change.action not in WRITES or not is_live(data.file):
                excess.append(Excess(why, address, values))
    for each in reviewed:
        excess += _separated(each, today, kept_out, {*plan.set_aside}, past)
    excess += _swept(plan, reviewed)
    planned = today.keys() | kept_out
    missing = dict.fromkeys(str(key) for each in reviewed for key in each.changes if key not in planned)
    return Since(
        plans=tuple(each.plan for each in reviewed),
        new=tuple(new),
        gone=tuple(missing),
        different=different,
        same=len(today) - len(unlike) + covered,
        excess=tuple(excess),
    )


def _candidates(
    change: Change,
    reviewed: Iterable[ReviewedPlan],
    rows: Mapping[Key, Recorded],
    written_by: Mapping[Key, Container[str | None]],
) -> Iterator[_Candidate]:
    """Yield the reviewed changes of a resource. `written_by` are the plans that a row's last run applied."""
    row = rows.get(change.key)
    # A category may have its former name too, from a rename with an unknown outcome.
    old = rows.get(Key(Kind.CATEGORY, change.previously)) if change.previously is not None else None
    ids = [each.server_id for each in (row, old) if each is not None and change.key.kind is Kind.CATEGORY]
    has_two_names = len(ids) == 2 and ids[0] is not None and ids[0] == ids[1]
    for each in reviewed:
        if (mine := each.changes.get(change.key)) is None:
            continue
        # A run that lets a former name go without a call may die before it sends anything of the new one.
        gone = (key for key in mine.formers if key in rows and rows[key].status in LET_GO)
        lets_go = any(each.plan in written_by[key] for key in gone)
        is_begun = each.plan in written_by.get(change.key, ()) or (lets_go and row is None)
        yield _Candidate(mine, is_begun, has_two_names)


def _swept(plan: Plan, reviewed: Sequence[ReviewedPlan]) -> Iterator[Excess]:
    """Yield what the sweep of activity types does beyond the reviewed ones."""
    codes = [each.sweep for each in reviewed if each.sweep is not None]
    if plan.sweep is not None and not codes:
        yield Excess("a sweep of activity types was not reviewed")
    elif plan.sweep is not None and (more := {*plan.sweep.known}.difference(*codes)):
        yield Excess(f"the sweep deletes more than was reviewed: {', '.join(sorted(more))}")


def _is_begun(
    change: Change,
    row: Recorded,
    candidates: Iterable[_Candidate],
    begun: Container[str | None],
    reviewed: Iterable[ReviewedPlan],
    past: Past,
) -> bool:
    """Return whether a run of a reviewed plan left an unchanged resource in doubt, for example in a sweep."""
    if row.status is not Status.ACTIVE or not _is_repeat(change):
        return False
    # Other removals leave a row that is not active. Whether a run began this one, its last call tells.
    is_retired = any(candidate.change.action is Action.RETIRE for candidate in candidates)
    if not is_retired and any(each.plan in begun for each in reviewed):
        return True
    run, takes_keyword = past.last_run(change.key)
    plans = past.plans_of([run]).get(run or "", frozenset())
    return not (is_retired and takes_keyword) and any(each.plan in plans for each in reviewed)


def _separated(
    reviewed: ReviewedPlan, today: Mapping[Key, Change], kept_out: Container[Key], aside: Container[Key], past: Past
) -> Iterator[Excess]:
    """Yield the parts of a rename, or of a category's deletion with its moves, that are missing and not done.

    `kept_out` are tags that today's plan sends again only to keep them out of a category that it deletes: the move of
    one that a run left in doubt is not missing.
    """
    changes = reviewed.changes
    missing = {key for key in changes if key not in today}
    going = [c.key for c in changes.values() if c.key.kind is Kind.CATEGORY and c.action is Action.DELETE]
    if not missing or not (going or any(change.previously for change in changes.values())):
        return
    ids = {row.server_id: key for key, row in past.rows(going).items() if row.server_id}
    for unit in _units(changes, ids):
        parts = [key for key in unit if key in missing and key not in aside]
        there = (key for key in unit if key in today and _does_a_part(today[key], changes[key]))
        if not parts or (present := next(there, None)) is None:
            continue
        rows = past.rows({*parts, *(c for key in parts if (c := changes[key].cascade) is not None)})
        for key in parts:
            is_repeated = key in kept_out and key in rows and _holds(rows[key].body, changes[key])
            if not (is_repeated or is_done(changes[key], rows)):
                why = f"{changes[key].action.word} was reviewed together with {present}, but is missing and not done"
                yield Excess(why, str(key))


def _does_a_part(change: Change, reviewed: Change) -> bool:
    """Return whether a change does at least a part of the reviewed one."""
    if change.action not in WRITES or reviewed.action not in WRITES:
        return change.action not in WRITES
    candidate, parts = _Candidate(reviewed, is_begun=True), atoms(change)
    return not parts or any(candidate.has(name, value) for name, value in parts.items())


def _other_basis(plan: Plan, reviewed: ReviewedPlan) -> Iterator[str]:
    """Yield how a reviewed plan's basis differs. A plan from before the first apply names no team and no state."""
    basis = plan.basis
    if not reviewed.base_url:
        yield f"{reviewed.file} was made with --no-state: it does not name its service"
    elif canonical_url(reviewed.base_url) != canonical_url(basis.base_url):
        yield f"{reviewed.file} was made for another service: {reviewed.base_url}, not {basis.base_url}"
    its, ours = (environment or "(none)" for environment in (reviewed.environment, basis.environment))
    if its != ours:
        yield f"{reviewed.file} was made for environment {its}, not {ours}"
    if reviewed.lineage is not None and reviewed.lineage != basis.lineage:
        yield f"{reviewed.file} was made for another state"
    if reviewed.team is not None and reviewed.team != basis.team:
        yield f"{reviewed.file} was made for team {reviewed.team!r}, not {basis.team!r}"


# --- the meaning of a change


def is_protective(change: Change) -> bool:
    """Return whether a change only keeps a tag out of a category that is deleted, which is part of that deletion."""
    return change.action is Action.UPDATE and OUTSIDE in change.fields and not atoms(change)


def atoms(change: Change) -> Mapping[tuple[str, str], Any]:
    """Return the parts of a change (fields, keywords, metadata, opened tags), each with its value before and after.

    That a tag leaves any category is none: it belongs to the deletion of a category, which was reviewed.
    """
    metadata, before = {**change.metadata_set, **dict.fromkeys(change.metadata_deleted)}, change.metadata_before
    return {
        **{("fields", f.name): (f.before, f.after) for f in change.fields if f != OUTSIDE},
        **{("keywords", word): (False, True) for word in change.keywords_added},
        **{("keywords", word): (True, False) for word in change.keywords_deleted},
        **{("metadata", name): (before.get(name), after) for name, after in metadata.items()},
        **{("opens", name): (OPENED.before, OPENED.after) for name in change.opens or ()},
    }


def _frame(change: Change) -> tuple[object, ...]:
    """Return the meaning of a change apart from its atoms and former names.

    A removal is reviewed for its cause, and for what people wrote about it on a line under `removed:`.
    """
    written = change.reason if change.cause is RemovalCause.REMOVED_LINE else None
    return change.action, change.cascade, change.previously is None, change.cause or None, written


def _is_as_reviewed(change: Change, reviewed: Change) -> bool:
    """Return whether two changes mean the same, wherever they stand."""
    if _frame(change) != _frame(reviewed):
        return False
    if is_same(change, reviewed):  # as nearly all are
        return True
    return (frozenset(change.formers), atoms(change)) == (frozenset(reviewed.formers), atoms(reviewed))


def shown(change: Change) -> dict[str, Any]:
    """Return the meaning of a change as plain values, named as in the machine format of plans."""
    _, cascade, _, cause, written = _frame(change)
    previously = None if change.merges else change.previously
    parts: dict[str, dict[str, Any]] = {"fields": {}, "keywords": {}, "metadata": {}, "opens": {}}
    for (part, name), (before, after) in atoms(change).items():
        parts[part][name] = {"before": before, "after": after}
    words = {"add": [k for k, v in parts["keywords"].items() if v["after"]]}
    words["delete"] = [k for k, v in parts["keywords"].items() if v["before"]]
    frame = {"cascade": cascade and str(cascade), "previously": previously, "reason": written or cause}
    return {
        "action": change.action.word,
        **{name: value for name, value in frame.items() if value is not None},
        **parts,
        "keywords": {name: frozenset(value) for name, value in words.items()},
        "merges": frozenset(change.merges or ()),
        "opens": frozenset(change.opens or ()),
    }


# --- less than was reviewed


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A reviewed change of a resource. `is_begun` means that a run of its plan wrote the row last.

    `has_two_names` means that the former name in today's change is another name of the category that already has the
    new name.
    """

    change: Change
    is_begun: bool
    has_two_names: bool = False

    def has(self, name: tuple[str, str], value: tuple[Any, Any]) -> bool:
        mine = atoms(self.change).get(name)
        return mine is not None and (mine == value or (self.is_begun and mine[1] == value[1]))

    def frames(self, change: Change) -> bool:
        """Return whether a change without its atoms is as reviewed. If it was begun, only the outcome counts.

        A former name may be missing: its own change shows whether that is done.
        """
        mine = self.change
        is_named = {*change.formers} <= {*mine.formers}
        if not self.is_begun:
            return _frame(change) == _frame(mine) and is_named
        if change.action in WRITES:
            return mine.action in WRITES and (self.has_two_names or is_named)
        is_weaker = mine.action not in WRITES and STRENGTH[change.action.word] <= STRENGTH[mine.action.word]
        return is_weaker and change.cascade in (None, mine.cascade)


def _is_repeat(change: Change) -> bool:
    """Return whether a change only sends a resource again as recorded."""
    return change.action in WRITES and change.previously is None and not atoms(change)


def _is_covered(change: Change, candidates: Sequence[_Candidate], row: Recorded | None) -> bool:
    """Return whether a change does nothing beyond the reviewed changes, and leaves out nothing that is not done."""
    framing = [candidate for candidate in candidates if candidate.frames(change)]
    if change.action not in WRITES and any(candidate.is_begun for candidate in framing):
        return True  # a removal that was begun may have to be completed in another way, which takes no more
    parts = atoms(change)
    if not framing or not all(any(c.has(name, value) for c in framing) for name, value in parts.items()):
        return False
    body = row.body if row is not None else NOTHING
    if not parts:
        return any(_holds(body, candidate.change) for candidate in framing)
    used = (c for c in framing if any(c.has(name, value) for name, value in parts.items()))
    return all(_holds(body, candidate.change, parts) for candidate in used)


def _holds(body: Body, change: Change, besides: Container[tuple[str, str]] = ()) -> bool:
    """Return whether a recorded body has all values that a change leaves behind."""
    holds: Mapping[str, Callable[[str], Any]] = {
        "fields": body.fields.get,
        "keywords": {*body.keywords}.__contains__,
        "metadata": body.metadata.get,
        "opens": lambda _: OPENED.after if ("fields", OPENED.name) in besides else body.fields.get(OPENED.name),
    }
    return all(
        holds[part](name) == after for (part, name), (_, after) in atoms(change).items() if (part, name) not in besides
    )


def is_done(change: Change, rows: Mapping[Key, Recorded]) -> bool:
    """Return whether the state records a change as done. A cascade is done with its category.

    That a tag is released or retired is recorded only when it is certain, unlike the deletion of a category whose
    rename is under way, so this counts whatever else about the tag is in doubt.
    """
    row = rows.get(change.key)
    category = rows.get(change.cascade) if change.cascade is not None else None
    if category is not None and category.status is Status.DELETED and not category.doubtful:
        return True
    if row is None:
        return False
    if change.action not in WRITES and (not row.doubtful or row.status in LET_GO):
        return row.status in GONE[change.action.word]
    if row.doubtful:
        return False
    return row.confirmed and row.status is Status.ACTIVE and _holds(row.body, change)


def _units(changes: Mapping[Key, Change], ids: Mapping[str, Key]) -> Iterable[list[Key]]:
    """Return the groups of changes that belong together.

    A group has the names of a rename, or a deleted category with its cascade and the tags that leave it. `ids` maps the
    server ids, by which a tag may refer to its category, to deleted categories.
    """
    group: dict[Key, list[Key]] = {}
    for key, change in changes.items():
        bound = [*change.formers, *([change.cascade] if change.cascade is not None else ())]
        for field in change.fields:  # the category that a tag leaves
            if field.name == "category" and field.before:
                bound.append(Key(Kind.CATEGORY, str(field.before)))
            if field.name == "tagCategoryId" and field.before in ids:
                bound.append(ids[str(field.before)])
        for other in bound:
            if other in changes and (other.kind is key.kind or changes[other].action is Action.DELETE):
                mine, theirs = group.get(key, [key]), group.get(other, [other])
                if mine is not theirs:
                    mine += theirs
                    group.update(dict.fromkeys(mine, mine))
    return {id(part): part for part in group.values()}.values()

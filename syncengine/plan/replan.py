"""Plan a saved plan again: its inputs and today's rows → the same plan with its calls, or a refusal. Pure.

A plan's file is input from outside (docs/planning.md 6). It holds no calls: they follow from its inputs as they did
when it was made, and what it shows must come out again. Places and reasons explain and are not compared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from syncengine.effects import Effect
from syncengine.errors import Diagnostic, StalePlan
from syncengine.plan.aim import Aim, Note
from syncengine.plan.build import derived, reasserted
from syncengine.plan.checks import objections
from syncengine.plan.diff import Action, Change, Difference
from syncengine.plan.model import Plan, PlanInputs
from syncengine.plan.policy import aim
from syncengine.plan.scope import Scope
from syncengine.resource import Key, Kind, Recorded, Resource, Status

INCONSISTENT = "plan-inconsistent"
"""The code of the error about a plan that shows one thing and would do another."""

REMOVALS = frozenset({Action.FORGET, Action.RETIRE, Action.DELETE})

FOLLOWING = frozenset({"create-only", "ignored", "not-enabled"})
"""The kinds of notes that follow from the content sent. Other notes are about resources that the plan leaves alone."""


class Replanned(NamedTuple):
    """A saved plan that was planned again, and the differences behind its changes."""

    plan: Plan
    differences: tuple[Difference, ...]


def inconsistent(why: str) -> StalePlan:
    return StalePlan(f"the plan file contradicts itself or the state: {why}; plan again", code=INCONSISTENT)


def keys_of(plan: Plan) -> set[Key]:
    """Return the resources whose rows decide a saved plan, apart from members of categories and a sweep's types."""
    inputs = plan.inputs
    named = {Key(each.key.kind, name) for each in inputs.desired for name in each.previously}
    places = {key for key, _ in inputs.places}
    return {*plan.prior, *(each.key for each in inputs.desired), *named, *_leaving(plan), *_kept(plan), *places}


def planned_again(
    plan: Plan, rows: Mapping[Key, Recorded], *, is_begun: bool, owns: bool, deletes_tags: bool
) -> Replanned:
    """Plan a saved plan again over the `rows` of `keys_of`, every member of the categories that it deletes or renames,
    and every activity type if it sweeps. Raise `StalePlan` (`plan-inconsistent`) when that is impossible.

    `owns` says whether a sweep of the state was approved before. Of a plan that was begun only the rest is planned.
    """
    rows = dict(sorted(rows.items()))  # a database gives them in any order
    inputs, desired = _sound(plan)
    reasserts = plan.reasserts and not is_begun  # the run that began it has put its rows in doubt
    doubted = reasserted(rows, desired) if reasserts else rows
    lines, leaving = {line.key: line for line in inputs.removed}, _leaving(plan)
    rules = dataclasses.replace(inputs.rules, deletes_tags=deletes_tags)
    target = aim(doubted, desired, lines, rules, Scope(), before=rows, may_leave=leaving)
    _release_kept(target, plan, rows)
    if plan.sweep is not None:
        _refuse_unsaid(target, plan)
    for problem in (*target.problems, *objections(target, doubted)):
        raise inconsistent(_sentence(problem))
    basis = replace(plan.basis, swept_before=owns)
    again, delta = derived(target, doubted, rows, basis, reasserts, lambda _: plan.sweep is not None)
    summary = replace(again.summary, unchanged=plan.summary.unchanged, kept=plan.summary.kept)
    result = replace(
        plan,
        summary=summary,
        reasserts=reasserts,
        sweep=again.sweep,
        changes=again.changes,
        stages=again.stages,
        records=(*again.records, *_moved(inputs, rows, again.prior)),
        wholes=again.wholes,
    )
    if not is_begun:
        _refuse_other(plan, result, again.notes)
        if unproven := [key for key in again.prior if key not in plan.prior]:
            raise inconsistent(f"it does not record the row of {unproven[0]} that it was made from")
    return Replanned(result, delta.differences)


def _sound(plan: Plan) -> tuple[PlanInputs, dict[Key, Resource]]:
    """Return a plan's inputs and its desired resources. Raise `StalePlan` for those that no manifest can declare."""
    desired = {each.key: replace(each, outside=False) for each in plan.inputs.desired}  # that follows from the rows
    for key, each in desired.items():
        if len({*each.body.keywords}) < len(each.body.keywords):
            raise inconsistent(f"{key} has a keyword twice")
        if not each.sound or each.status is not Status.ACTIVE:
            raise inconsistent(f"{key} would be sent without being managed, which only an undo does")
    return plan.inputs, desired


def _leaving(plan: Plan) -> set[Key]:
    return {change.key for change in plan.changes if change.action in REMOVALS}


def _kept(plan: Plan) -> list[Key]:
    return [note.key for note in plan.notes if note.kind == "kept"]


def _release_kept(target: Aim, plan: Plan, rows: Mapping[Key, Recorded]) -> None:
    """Record as released what the plan says it leaves on the service, for reasons outside the plan."""
    kept = (rows[key] for key in _kept(plan) if key in rows and key not in target.desired and key not in target.leaving)
    target.released += [row for row in kept if row.status is not Status.RELEASED]


def _refuse_unsaid(target: Aim, plan: Plan) -> None:
    """Refuse a sweep that would release a managed activity type, which no change and no note shows."""
    notes = {note.key for note in plan.notes}
    if unsaid := [row.key for row in target.staying if row.status is Status.ACTIVE and row.key not in notes]:
        raise inconsistent(f"{unsaid[0]} would no longer be managed, which the plan does not show")


def _moved(inputs: PlanInputs, rows: Mapping[Key, Recorded], touched: Mapping[Key, str]) -> Iterable[Effect]:
    """Yield the new places of resources that stay as they are, and that are recorded as managed today."""
    for key, source in inputs.places:
        row = rows.get(key)
        if row is not None and key not in touched and row.status is Status.ACTIVE:
            yield Effect(key=key, source=source, protect=row.protect)


def _sentence(problem: Diagnostic) -> str:
    return f"{problem.address}: {problem.message}" if problem.address else problem.message


def _refuse_other(plan: Plan, again: Plan, notes: Iterable[Note]) -> None:
    """Refuse a plan whose inputs give something else than it shows."""
    shown, made = ({each.key: each for each in one.changes} for one in (plan, again))
    for key in {**shown, **made}:
        if not (key in shown and key in made and _is_same(shown[key], made[key])):
            raise inconsistent(f"it shows a different change of {key} than it would make")
    if len(plan.changes) != len(again.changes) or plan.summary != again.summary:
        raise inconsistent("its summary does not match the changes and requests that it would make")
    if _codes(plan) != _codes(again):
        raise inconsistent("its sync session does not match its changes")
    if _following(plan.notes) != _following(notes):
        raise inconsistent("it hides a note about a field that the service does not accept")


def _is_same(shown: Change, made: Change) -> bool:
    return shown == made or replace(shown, source=None, reason=None) == replace(made, source=None, reason=None)


def _codes(plan: Plan) -> tuple[str, ...] | None:
    return tuple(sorted(plan.sweep.known)) if plan.sweep else None


def _following(notes: Iterable[Note]) -> list[Note]:
    following = (note for note in notes if note.kind in FOLLOWING)
    return sorted((replace(note, source=None) for note in following), key=repr)


def renamed_and_going(plan: Plan) -> tuple[list[str], list[str]]:
    """Return the former names of the categories that a plan renames, and the names of those that it deletes."""
    categories = [each for each in plan.changes if each.key.kind is Kind.CATEGORY]
    renamed = [each.previously for each in categories if each.previously is not None]
    return renamed, [each.key.name for each in categories if each.action is Action.DELETE]

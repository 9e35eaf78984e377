"""Plan → its view for people: sections and rows, most dangerous first; pure.

Every rendering for people is made from this view, so that all show the same in the same order. All texts in it are safe
to show (`escape.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from syncengine.plan.aim import Note
from syncengine.plan.diff import Action, Change
from syncengine.plan.model import Plan
from syncengine.render import change_details
from syncengine.render.change_details import ChangeDetail, Details, Span, SpanMark
from syncengine.render.escape import quoted, visible
from syncengine.render.rows import MANY, SAME, Fold, Member, Section, SectionRow, folded
from syncengine.render.style import Tone
from syncengine.render.two_sides import compared_with
from syncengine.render.words import NOUNS, count_of, number, summary_of
from syncengine.resource import Key, Kind

ABRIDGED = "Long lists are folded; --verbose shows every line, --format json every value."

Buckets = Mapping[tuple[Kind, Action], Sequence[Change]]


def sections_of(plan: Plan, fold: Fold) -> tuple[Section, ...]:
    """All sections of a plan."""
    changes = _bucketed(plan.changes)
    return (
        *_sweep(plan, changes.get((Kind.ACTIVITY_TYPE, Action.DELETE), ()), fold),
        *_category_deletes(plan.changes, fold),
        *(section for topic in TOPICS for section in _topic(topic, changes, fold)),
        *_notes(plan.notes, fold),
    )


def is_abridged(sections: Iterable[Section]) -> bool:
    """Whether some rows leave out details of their resources."""
    return any(row.differing for section in sections for row in section.rows)


def headline(plan: Plan) -> str:
    if plan.changes or plan.sweep:
        return f"Plan: {summary_of(plan.summary)}."
    if plan.base is not None:
        return "This pull request changes nothing."
    if not plan.summary.unchanged:
        return "No changes."
    verb = "matches" if plan.summary.unchanged == 1 else "match"
    return f"No changes. {count_of(plan.summary.unchanged, 'resource')} {verb} the recorded state."


def scope(plan: Plan) -> str:
    """The service and the team of the plan."""
    where = "The embedded sandbox" if plan.basis.base_url == "sandbox" else f"Service {visible(plan.basis.base_url)}"
    where = f"{where}, team {quoted(plan.basis.team)}" if plan.basis.team else where
    if plan.base is None:
        return f"{where}."
    compared = compared_with(plan.base)
    return f"{compared}." if plan.base.is_in_git else f"{where}; {compared}."


def _bucketed(changes: Sequence[Change]) -> Buckets:
    """Changes by kind and action, without tags that are deleted with their category."""
    buckets: dict[tuple[Kind, Action], list[Change]] = defaultdict(list)
    for change in changes:
        if not change.cascade:
            buckets[change.key.kind, change.action].append(change)
    return buckets


def _row(change: Change, details: Details, theme: str = "", depth: int = 0) -> SectionRow:
    member = Member(visible(change.key.name), change.source)
    return SectionRow(change.action.value, (member,), details, theme=theme, depth=depth)


# --- topics: one section each, from changes of one kind and action ---------------------------------------------------


class Topic(NamedTuple):
    """A section: its changes, its heading (`{}` is the count and noun), and the details of each.

    `details` returns None for a change that does not belong to the topic.
    """

    kind: Kind
    action: Action
    title: str
    tone: Tone
    says: tuple[str, ...]
    details: Callable[[Change], Details | None]


def _taking(aspect: Callable[[Change], Details]) -> Callable[[Change], Details | None]:
    """One kind of removal in updates, for the changes that have it."""

    def details(change: Change) -> Details | None:
        return (*aspects, *change_details.reason(change)) if (aspects := aspect(change)) else None

    return details


def _remaining(change: Change) -> Details | None:
    """The rest of an update without its removals; a change of only removals needs no second row."""
    rest = change_details.updated(change)
    if not rest and change_details.takes(change):
        return None
    return (*rest, *change_details.reason(change)) or (change_details.remark("sent again as it is"),)


def _created(change: Change) -> Details:
    return change_details.created_details(change, verbose=False)


FORGET = "Forgotten: the tag stays on the service and still tags time; this project no longer manages it."
RETIRE = "Retired: its keywords are deleted, so that it tags nobody's time; its metadata stays for reports."
DELETE = "Deleted: the tag is gone from the service."
OPEN = "What only authorized members could read becomes readable for the whole team."

TOPICS: tuple[Topic, ...] = (
    Topic(Kind.TAG, Action.DELETE, "Delete {}", Tone.REMOVE, (DELETE,), change_details.removed_details),
    Topic(Kind.TAG, Action.RETIRE, "Retire {}", Tone.REMOVE, (RETIRE,), change_details.removed_details),
    Topic(Kind.TAG, Action.FORGET, "Forget {}", Tone.REMOVE, (FORGET,), change_details.removed_details),
    *(
        Topic(kind, action, f"{action.word.capitalize()} {{}}", Tone.REMOVE, (), change_details.removed_details)
        for kind in (Kind.CATEGORY, Kind.ACTIVITY_TYPE)
        for action in (Action.RETIRE, Action.FORGET)
    ),
    Topic(Kind.TAG, Action.UPDATE, "Delete keywords of {}", Tone.REMOVE, (), _taking(change_details.keywords_deleted)),
    Topic(Kind.TAG, Action.UPDATE, "Delete metadata of {}", Tone.REMOVE, (), _taking(change_details.metadata_deleted)),
    *(
        Topic(kind, Action.UPDATE, "Clear fields of {}", Tone.REMOVE, (), _taking(change_details.cleared))
        for kind in Kind
    ),
    Topic(Kind.TAG, Action.UPDATE, "Open {}: PRIVATE → PUBLIC", Tone.REMOVE, (OPEN,), _taking(change_details.opening)),
    *(Topic(kind, Action.CREATE, "Create {}", Tone.CREATE, (), _created) for kind in Kind),
    *(Topic(kind, Action.UPDATE, "Update {}", Tone.UPDATE, (), _remaining) for kind in Kind),
)
"""All topics but deleted categories and activity types, in the order in which people should read them."""


def _topic(topic: Topic, changes: Buckets, fold: Fold) -> Iterator[Section]:
    rows = list(_topic_rows(topic, changes.get((topic.kind, topic.action), ()), fold))
    if rows:
        noun = NOUNS[topic.kind]
        title = topic.title.format(count_of(len(rows), noun))
        rows_to_show = folded(rows, noun, fold, same=topic.action is Action.UPDATE)
        yield Section(title, topic.tone, topic.says, rows_to_show)


def _topic_rows(topic: Topic, changes: Sequence[Change], fold: Fold) -> Iterator[SectionRow]:
    details = topic.details
    if topic.action is Action.CREATE:
        details = partial(change_details.created_details, verbose=fold is Fold.NOTHING)
        if fold is Fold.LONG and len(changes) > MANY:
            yield from _many_created(changes)
            return
    for change in changes:
        if (aspects := details(change)) is not None:
            yield _row(change, aspects, _theme(change, aspects))


def _many_created(changes: Sequence[Change]) -> Iterator[SectionRow]:
    """Rows that will be folded by their theme, with details for those only that may be shown."""
    met: dict[tuple[str, str], int] = defaultdict(int)
    for change in changes:
        theme = _theme(change, ())
        group = (theme, "" if theme or change.source is None else change.source.file)
        met[group] += 1
        yield _row(change, _created(change) if met[group] < SAME else (), theme)


def _theme(change: Change, details: Details) -> str:
    """The theme of a change: of an update its differing fields, of others their category; without one, their file."""
    if change.action is Action.UPDATE:
        return f"({', '.join(d.label for d in details if d.label) or 'sent again'})"
    if category := next((f.after for f in change.fields if f.name == "category"), None):
        return f"in category {visible(str(category))}"
    return ""


# --- the sweep --------------------------------------------------------------------------------------------------------

SWEEP = (
    "Completing the sync session deletes every activity type of the team that these manifests do not declare: "
    "{} recorded here, and any that this project does not know."
)
FIRST_SWEEP = "It is the first sync session of this state: approving it means that this project owns the whole list."


def _sweep(plan: Plan, deletes: Sequence[Change], fold: Fold) -> Iterator[Section]:
    """The section of a sweep: deleting activity types affects the whole team (docs/planning.md 3.1)."""
    if not (plan.sweep or deletes):
        return
    rows = [_row(change, change_details.reason(change), _theme(change, ())) for change in deletes]
    names = {change.key.name for change in deletes}
    codes = plan.sweep.known if plan.sweep else ()
    rows += [SectionRow(Action.DELETE.value, (Member(visible(code), None),)) for code in codes if code not in names]
    says = _sweep_says(len(rows), first=plan.sweep.first) if plan.sweep else ()
    yield Section(
        f"Sweep: delete {count_of(len(rows), 'activity type')}" + (" and all unknown ones" if plan.sweep else ""),
        Tone.REMOVE,
        says,
        folded(rows, "activity type", fold, same=False),
    )


def _sweep_says(count: int, *, first: bool) -> tuple[str, ...]:
    sentence = SWEEP.format(number(count))
    return (sentence, FIRST_SWEEP) if first else (sentence,)


# --- categories that take tags along ----------------------------------------------------------------------------------

CATEGORY = "The service deletes a category with every tag that is still in it."
UNKNOWN_TAGS = "any that was made outside this project"


def _category_deletes(changes: Sequence[Change], fold: Fold) -> Iterator[Section]:
    """Each deleted category with the tags that go with it (docs/planning.md 2.2)."""
    cascades = _cascades(changes)
    deletions = [c for c in changes if c.key.kind is Kind.CATEGORY and c.action is Action.DELETE]
    rows = [row for change in deletions for row in _category_rows(change, cascades.pop(change.key, []), fold)]
    rows += [row for key, members in cascades.items() for row in _cascade_rows(str(key), members, fold)]
    if rows:
        along = f" and {count_of(count, 'tag')} in it" if (count := sum(c.cascade is not None for c in changes)) else ""
        title = f"Delete {count_of(len(deletions), 'category')}{along}"
        yield Section(title, Tone.REMOVE, (CATEGORY,), tuple(rows))


def _cascades(changes: Sequence[Change]) -> dict[Key, list[Change]]:
    cascades: dict[Key, list[Change]] = defaultdict(list)
    for change in changes:
        if change.cascade:
            cascades[change.cascade].append(change)
    return cascades


def _category_rows(change: Change, members: Sequence[Change], fold: Fold) -> Iterator[SectionRow]:
    along = f"deletes {count_of(len(members), 'tag')} with it, and {UNKNOWN_TAGS}"
    yield _row(change, (ChangeDetail("", (Span(along, SpanMark.REMARK),)), *change_details.reason(change)))
    yield from _cascade_rows(f"category {visible(change.key.name)}", members, fold)


def _cascade_rows(category: str, members: Sequence[Change], fold: Fold) -> Iterator[SectionRow]:
    rows = [_row(change, change_details.reason(change), f"with {visible(category)}", depth=1) for change in members]
    yield from folded(rows, "tag", fold, same=False)


# --- notes ------------------------------------------------------------------------------------------------------------

NOTE_SYMBOL = "*"
NOTES = "Nothing is sent for these."


def _notes(notes: Sequence[Note], fold: Fold) -> Iterator[Section]:
    if notes:
        rows = [_note(note) for note in notes]
        title = count_of(len(notes), "note").capitalize()
        yield Section(title, Tone.NOTE, (NOTES,), folded(rows, "resource", fold, same=True))


def _note(note: Note) -> SectionRow:
    detail = ChangeDetail(note.kind, (Span(visible(note.message)),))
    return SectionRow(
        NOTE_SYMBOL, (Member(visible(str(note.key)), note.source),), (detail,), theme=f"({visible(note.kind)})"
    )

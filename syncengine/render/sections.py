"""Changes of a plan → sections and rows for people, the most dangerous first; pure.

All texts in them are safe to show (`escape.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from syncengine.plan.aim import Note
from syncengine.plan.diff import OPENED, PUBLISHED, Action, Change
from syncengine.plan.model import Plan
from syncengine.render.escape import visible
from syncengine.render.fold import MANY
from syncengine.render.rows import (
    MOST,
    Extent,
    Fold,
    FoldedRows,
    Member,
    Rank,
    Section,
    SectionEntries,
    SectionRow,
    folded,
)
from syncengine.render.style import Tone
from syncengine.render.values import (
    BRIEF,
    MANY_ITEMS,
    ChangeDetail,
    Details,
    Room,
    Values,
    cleared,
    created,
    created_details,
    keywords_deleted,
    keywords_in_all,
    metadata_deleted,
    note_values,
    opened,
    reason,
    remark,
    removed,
    removed_content,
    removed_details,
    unusual,
    updated,
    value_details,
)
from syncengine.render.words import NOUNS, count_of, number
from syncengine.resource import Key, Kind

GONE = frozenset({Action.DELETE, Action.RETIRE, Action.FORGET})
"""The actions by which a resource leaves the project."""

Buckets = Mapping[tuple[Kind, Action], Sequence[Change]]


def sections_of(plan: Plan, fold: Fold, most: int = MOST) -> tuple[Section, ...]:
    """Return all sections of a plan: removals, tags made public, odd changes, other changes, and notes.

    Each section has at most `most` rows.
    """
    extent = Extent(fold, most)
    changes, cascaded = _bucketed(plan.changes)
    removals, others = _topics(REMOVALS, changes, extent), _topics(OTHERS, changes, extent)
    parts_odd = len(others) > 1 and not all(each.is_short for each in others)
    return (
        *_sweep(plan, changes.get((Kind.ACTIVITY_TYPE, Action.DELETE), ()), extent),
        *_category_deletes(changes.get((Kind.CATEGORY, Action.DELETE), ()), cascaded, extent),
        *(section for each in removals for section in each.whole()),
        *(section for each in others for section in (each.odd() if parts_odd else each.whole())),
        *(section for each in others if parts_odd for section in each.rest()),
        *_notes(plan.notes, extent),
    )


def is_abridged(sections: Iterable[Section]) -> bool:
    """Return whether some rows leave out details of their resources."""
    return any(row.abridged for section in sections for row in section.rows)


def _bucketed(changes: Sequence[Change]) -> tuple[Buckets, Sequence[Change]]:
    """Return the changes by kind and action, and apart from them the tags that are deleted with their category."""
    buckets: dict[tuple[Kind, Action], list[Change]] = defaultdict(list)
    for kind_and_action, run in groupby(changes, _KIND_AND_ACTION):
        buckets[kind_and_action].extend(run)
    deleted = buckets.pop((Kind.TAG, Action.DELETE), [])
    buckets[Kind.TAG, Action.DELETE] = [change for change in deleted if not change.cascade]
    return buckets, [change for change in deleted if change.cascade]


_KIND_AND_ACTION = attrgetter("key.kind", "action")


def _member(change: Change) -> Member:
    return Member(visible(change.key.name), change.source, change.key.kind, change.action in GONE)


# --- topics: one section each, from changes of one kind and action ---------------------------------------------------


class Topic(NamedTuple):
    """A section: its kind and action, its heading (`{}` is the count and noun), and the values of its changes.

    `says` are sentences below the heading. `values` returns the values of a change that the section compares, and shows
    unless the resource is removed; `None` for a change that does not belong to it.
    """

    kind: Kind
    action: Action
    title: str
    tone: Tone
    says: tuple[str, ...]
    values: Callable[[Change], Values | None]


def _taking(values: Callable[[Change], Values]) -> Callable[[Change], Values | None]:
    """Return a function that adds the reason to the values of a change; it returns `None` when there are none."""

    def found(change: Change) -> Values | None:
        return (*each, *reason(change)) if (each := values(change)) else None

    return found


def _remaining(change: Change) -> Values | None:
    """Return the values of an update without its removals; `None` for an update that only removes."""
    if rest := updated(change):
        return (*rest, *reason(change))
    if (
        change.keywords_deleted
        or change.metadata_deleted
        or change.opening is not None
        or any(f.clears for f in change.fields)
    ):
        return None
    return reason(change)


FORGET = "A forgotten tag stays on the service and still tags time; this project no longer manages it."
RETIRE = "A retired tag loses its keywords, so it no longer tags time; its metadata stays for reports."
DELETE = "A deleted tag is removed from the service."
OPEN = "The whole team can read a public tag; only authorized members could read it before."
UNKNOWN = "The whole team can read a public tag; who could read it before is unknown, so it counts as PRIVATE."

_OPENED, _PUBLISHED = _taking(partial(opened, OPENED)), _taking(partial(opened, PUBLISHED))

REMOVALS: tuple[Topic, ...] = (
    Topic(Kind.TAG, Action.DELETE, "Delete {}", Tone.REMOVE, (DELETE,), removed),
    Topic(Kind.TAG, Action.RETIRE, "Retire {}", Tone.REMOVE, (RETIRE,), removed),
    Topic(Kind.TAG, Action.FORGET, "Forget {}", Tone.REMOVE, (FORGET,), removed),
    *(
        Topic(kind, action, f"{action.word.capitalize()} {{}}", Tone.REMOVE, (), removed)
        for kind in (Kind.CATEGORY, Kind.ACTIVITY_TYPE)
        for action in (Action.RETIRE, Action.FORGET)
    ),
    Topic(Kind.TAG, Action.UPDATE, "Delete keywords of {}", Tone.REMOVE, (), _taking(keywords_deleted)),
    Topic(Kind.TAG, Action.UPDATE, "Delete metadata of {}", Tone.REMOVE, (), _taking(metadata_deleted)),
    *(Topic(kind, Action.UPDATE, "Clear fields of {}", Tone.REMOVE, (), _taking(cleared)) for kind in Kind),
    Topic(Kind.TAG, Action.UPDATE, "Make {} public: PRIVATE → PUBLIC", Tone.PUBLIC, (OPEN,), _OPENED),
    Topic(Kind.TAG, Action.CREATE, "Make {} public under a new name: PRIVATE → PUBLIC", Tone.PUBLIC, (OPEN,), _OPENED),
    *(
        Topic(Kind.TAG, action, "Make {} of unknown visibility public", Tone.PUBLIC, (UNKNOWN,), _PUBLISHED)
        for action in (Action.UPDATE, Action.CREATE)
    ),
)
"""All topics of removals in reading order, except for deleted categories and activity types."""

OTHERS: tuple[Topic, ...] = (
    *(Topic(kind, Action.CREATE, "Create {}", Tone.CREATE, (), created) for kind in Kind),
    *(Topic(kind, Action.UPDATE, "Update {}", Tone.UPDATE, (), _remaining) for kind in Kind),
)


class _TopicRows(NamedTuple):
    """A topic that has changes, with its rows. `size` is the number of changes."""

    topic: Topic
    size: int
    rows: FoldedRows
    more: str

    @property
    def is_short(self) -> bool:
        """Whether people read all its rows, none of which stands for several resources."""
        return self.size <= MANY and not any(row.label for row in (*self.rows.odd, *self.rows.rest))

    def whole(self) -> Iterator[Section]:
        """Yield one section with all rows, the odd ones first."""
        yield self._section(self._counted(self.size), (*self.rows.odd, *self.rows.rest))

    def odd(self) -> Iterator[Section]:
        """Yield a section with the odd rows, if there are any."""
        if self.rows.odd:
            others = number(self.size - self.rows.odd_count)
            yield self._section(f"{self._counted(self.rows.odd_count)}, unlike the other {others}", self.rows.odd)

    def rest(self) -> Iterator[Section]:
        if self.rows.rest:
            yield self._section(self._counted(self.size - self.rows.odd_count), self.rows.rest)

    def _counted(self, count: int) -> str:
        return self.topic.title.format(count_of(count, NOUNS[self.topic.kind]))

    def _section(self, title: str, rows: tuple[SectionRow, ...]) -> Section:
        return Section(title, self.topic.tone, self.topic.says, rows, self.more)


def _topics(topics: Sequence[Topic], buckets: Buckets, extent: Extent) -> list[_TopicRows]:
    found = []
    for topic in topics:
        changes = buckets.get((topic.kind, topic.action), ())
        if topic.action is Action.UPDATE or topic.tone is Tone.PUBLIC:
            changes = [change for change in changes if topic.values(change) is not None]
        if changes:
            entries = _topic_entries(topic, changes)
            found.append(_TopicRows(topic, len(changes), folded(entries, extent), entries.more))
    return found


def _topic_entries(topic: Topic, changes: Sequence[Change]) -> SectionEntries:
    is_update, is_fresh = topic.action is Action.UPDATE, topic.action is Action.CREATE
    is_removal = not (is_update or is_fresh)

    def values(number: int) -> Values:
        return topic.values(changes[number]) or ()

    def details(number: int, room: Room, whole: bool) -> Details:
        change = changes[number]
        if is_removal:
            return removed_details(change, room)
        if topic.tone is Tone.CREATE:
            return (*created_details(change, room, whole=whole), *unusual(values(number)))
        found = value_details(values(number), MANY_ITEMS if room is BRIEF and is_update else room)
        return (*found, *unusual(values(number))) if found else (remark("sent again unchanged"),)

    entries = _entries_of(changes, topic.action.value, values, details, NOUNS[topic.kind])
    if is_removal:
        return replace(entries, least=MANY, rank=Rank.REMOVAL, total=partial(_total, changes))
    return replace(
        entries,
        least=MANY if is_fresh else 0,
        rank=Rank.REMOVAL if topic in REMOVALS else None,
        unlike=", all different",
        fresh=is_fresh,
        lines=topic.tone is Tone.CREATE,
        loses=lambda number: (),
    )


def _entries_of(
    changes: Sequence[Change],
    symbol: str,
    values: Callable[[int], Values],
    details: Callable[[int, Room, bool], Details],
    noun: str,
) -> SectionEntries:
    """Return the entries of changes; an example of many shows the content that one of them loses."""
    return SectionEntries(
        names=[change.key.name for change in changes],
        values=values,
        symbol=symbol,
        member=lambda number: _member(changes[number]),
        source=lambda number: changes[number].source,
        details=details,
        noun=noun,
        loses=lambda number: removed_content(changes[number]),
    )


def _total(changes: Sequence[Change], numbers: Sequence[int]) -> Details:
    """Return common details of many removals: their deleted keywords, and their reason if all have the same."""
    members = [changes[number] for number in numbers]
    reasons = {change.reason for change in members}
    return (
        *keywords_in_all([change.keywords_deleted for change in members]),
        *(value_details(reason(members[0]), BRIEF) if len(reasons) == 1 else ()),
    )


# --- the sweep --------------------------------------------------------------------------------------------------------

SWEEP = (
    "Completing the sync session deletes every activity type of the team that these manifests do not declare: "
    "{} recorded in this state, and any that this project does not know."
)
FIRST_SWEEP = (
    "This is the first sync session of this state: approving it makes this project the owner of the team's whole list"
    " of activity types."
)


def _sweep(plan: Plan, deletes: Sequence[Change], extent: Extent) -> Iterator[Section]:
    """Yield the section of a sweep: deleting activity types affects the whole team (docs/planning.md 3.1)."""
    if not (plan.sweep or deletes):
        return
    names = {change.key.name for change in deletes}
    codes = plan.sweep.known if plan.sweep else ()
    others = [code for code in codes if code not in names]
    members = [*map(_member, deletes), *(Member(visible(code), None, Kind.ACTIVITY_TYPE.value) for code in others)]
    entries = SectionEntries(
        names=[*(change.key.name for change in deletes), *others],
        values=lambda number: removed(deletes[number]) if number < len(deletes) else (),
        symbol=Action.DELETE.value,
        member=members.__getitem__,
        source=lambda number: members[number].source,
        details=lambda n, room, _: removed_details(deletes[n], room) if n < len(deletes) else (),
        noun="activity type",
        least=MANY,
        rank=Rank.REMOVAL,
        total=lambda _: (),
        loses=lambda number: removed_content(deletes[number]) if number < len(deletes) else (),
    )
    rows = folded(entries, extent)
    says = (SWEEP.format(number(len(members))), *((FIRST_SWEEP,) if plan.sweep.first else ())) if plan.sweep else ()
    title = f"Sweep: delete {count_of(len(members), 'activity type')}{' and all unknown ones' if plan.sweep else ''}"
    yield Section(title, Tone.REMOVE, says, (*rows.odd, *rows.rest))


# --- categories that take tags along ----------------------------------------------------------------------------------

CATEGORY = "Deleting a category also deletes every tag that is still in it."


def _category_deletes(deletions: Sequence[Change], cascaded: Sequence[Change], extent: Extent) -> Iterator[Section]:
    """Yield the section of deleted categories and of the tags deleted with them (docs/planning.md 2.2)."""
    cascades = _cascades(cascaded)
    along = [cascades.pop(change.key, []) for change in deletions]
    rows = _category_rows(deletions, along, extent) if deletions else FoldedRows((), 0, ())
    others = (row for key, members in cascades.items() for row in _cascade_rows(str(key), members, extent))
    if deletions or cascades:
        title = _category_title(len(deletions), len(cascaded))
        yield Section(title, Tone.REMOVE, (CATEGORY,), (*rows.odd, *rows.rest, *others), "more categories")


def _category_title(categories: int, tags: int) -> str:
    """Return the title of a section. There may be tags alone, once an earlier run has deleted their category."""
    if not categories:
        return f"Delete {count_of(tags, 'tag')} of deleted categories"
    along = f" and {count_of(tags, 'tag')} in {'it' if categories == 1 else 'them'}" if tags else ""
    return f"Delete {count_of(categories, 'category')}{along}"


def _cascades(changes: Sequence[Change]) -> dict[Key, list[Change]]:
    cascades: dict[Key, list[Change]] = defaultdict(list)
    for change in changes:
        if change.cascade:
            cascades[change.cascade].append(change)
    return cascades


def _category_rows(changes: Sequence[Change], along: Sequence[Sequence[Change]], extent: Extent) -> FoldedRows:
    """Return the rows of deleted categories, each row followed by the tags that go `along` with its categories.

    Categories are alike that take about as many tags and keywords along, to the next power of two.
    """

    def details(number: int, room: Room, _: bool) -> Details:
        return (_also(len(along[number]), 1), *removed_details(changes[number], room))

    def total(numbers: Sequence[int]) -> Details:
        also = _also(sum(len(along[number]) for number in numbers), len(numbers))
        return (also, *_total(changes, numbers))

    def below(numbers: Sequence[int], fold: Fold) -> tuple[SectionRow, ...]:
        members = [tag for number in numbers for tag in along[number]]
        category = f"category {changes[numbers[0]].key.name}" if len(numbers) == 1 else "their categories"
        return _cascade_rows(category, members, Extent(fold, extent.most))

    def values(number: int) -> Values:
        return removed(changes[number], tags=len(along[number]))

    entries = _entries_of(changes, Action.DELETE.value, values, details, "category")
    return folded(replace(entries, least=MANY, rank=Rank.REMOVAL, total=total, below=below), extent)


def _also(tags: int, categories: int) -> ChangeDetail:
    which = "it" if categories == 1 else "them"
    along = f"{count_of(tags, 'tag')} in {which}, and any" if tags else f"any tags in {which}"
    return remark(f"also deletes {along} that were created outside this project")


def _cascade_rows(category: str, members: Sequence[Change], extent: Extent) -> tuple[SectionRow, ...]:
    """Return the rows of tags that are deleted with their category."""

    def values(number: int) -> Values:
        own = removed(members[number])
        return own[1:] if members[number].reason else own  # which is the deletion of its category

    def details(number: int, room: Room, _: bool) -> Details:
        return removed_details(members[number], room)

    along = (remark(f"deleted with {category}"),)
    entries = _entries_of(members, Action.DELETE.value, values, details, "tag")
    rows = folded(replace(entries, least=MANY, rank=Rank.REMOVAL, total=lambda _: along, depth=1), extent)
    return (*rows.odd, *rows.rest)


# --- notes ------------------------------------------------------------------------------------------------------------

NOTE_SYMBOL = "*"
NOTES = "These notes change nothing that is declared."


def _notes(notes: Sequence[Note], extent: Extent) -> Iterator[Section]:
    if notes:
        entries = SectionEntries(
            names=[note.key.name for note in notes],
            values=lambda number: note_values(notes[number]),
            symbol=NOTE_SYMBOL,
            member=lambda number: _note_member(notes[number]),
            source=lambda number: notes[number].source,
            details=lambda number, room, _: value_details(note_values(notes[number]), room),
            noun="resource",
            unlike=", all different",
            fresh=True,
        )
        rows = folded(entries, extent)
        yield Section(count_of(len(notes), "note").capitalize(), Tone.NOTE, (NOTES,), (*rows.odd, *rows.rest))


def _note_member(note: Note) -> Member:
    return Member(visible(str(note.key)), note.source, note.key.kind.value, note.kind == "kept")

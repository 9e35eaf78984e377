"""Plan → its view for people: sections and rows, the most dangerous first; pure.

Every rendering for people is made from this view, so that all of them show the same in the same order. All texts in the
view are safe to show (`escape.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from syncengine.plan.aim import Note
from syncengine.plan.diff import OPENED, PUBLISHED, Action, Change, FieldChange
from syncengine.plan.model import Plan
from syncengine.plan.origins import whose
from syncengine.render import change_aspects, change_details
from syncengine.render.arrangement import MANY
from syncengine.render.change_details import BRIEF, MANY_ITEMS, ChangeDetail, Details, Room, Span
from syncengine.render.escape import quoted, visible
from syncengine.render.lost_keywords import lost_keywords
from syncengine.render.rows import (
    MOST,
    Extent,
    Fold,
    FoldedRows,
    Folding,
    Member,
    Rank,
    RowMaker,
    Section,
    SectionRow,
    folded,
)
from syncengine.render.section_entries import Aspects, AspectTable, ListedEntries, aspect_tables
from syncengine.render.style import Tone
from syncengine.render.two_sides import compared_with
from syncengine.render.undo import undo_sentences
from syncengine.render.unusual_letters import unusual_letters
from syncengine.render.words import NOUNS, among, count_of, number, summary_of
from syncengine.resource import Key, Kind

ABRIDGED = "Abridged: --verbose shows every line and value."

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


def head_lines(plan: Plan) -> tuple[str, ...]:
    """Return the sentences at the head of a plan in every format: counts and obstacles, details if any, and scope."""
    return tuple(filter(None, (headline(plan), among(plan.summary), scope(plan))))


def headline(plan: Plan) -> str:
    """Return the plan in one line: its counts, and the obstacles to its apply."""
    return " ".join((_in_one_sentence(plan), *_opens(plan), *_unknown(plan), *obstacles(plan)))


def obstacles(plan: Plan) -> Iterator[str]:
    """Yield the reasons why a plan cannot be applied as it is, each in a sentence."""
    if plan.is_denied:
        yield "Denied by a rule."
    if plan.is_undone:
        subject = "this plan would redo" if plan.changes_something else "the manifests still ask for"
        yield f"Blocked: {subject} changes that were undone."
    if plan.gate.is_closed:
        is_earlier = plan.base is not None and not whose(plan.gate, plan.base).fails
        yield f"Blocked: approval needed{' for earlier changes' if is_earlier else ''}."


def made_public(plan: Plan) -> Counter[FieldChange]:
    """Return how many tags become public: PRIVATE ones (`OPENED`), and those of unknown visibility (`PUBLISHED`)."""
    count: Counter[FieldChange] = Counter()
    for change in plan.changes:
        if opening := change.opening:
            count[opening] += len(change.opens or (change,))
    return count


def _opens(plan: Plan) -> Iterator[str]:
    """Yield a sentence that counts the tags that become public, if any."""
    public = made_public(plan)
    for first, what in ((OPENED, "PRIVATE tag"), (PUBLISHED, "tag")):
        if count := public[first]:
            yield f"Makes {count_of(count, what)}{'' if first == OPENED else ' of unknown visibility'} public."


def _unknown(plan: Plan) -> Iterator[str]:
    """Yield a sentence that counts files whose effect is unknown because a source was not read, if any."""
    if count := plan.unknown_effects:
        source = "its source was" if count == 1 else "their sources were"
        yield f"The effect of {count_of(count, 'file')} is unknown, because {source} not read."


def _in_one_sentence(plan: Plan) -> str:
    if plan.changes or plan.sweep:
        return f"Plan: {summary_of(plan.summary)}."
    if plan.base is not None:
        return f"This pull request makes no {'known ' if plan.unknown_effects else ''}changes."
    if not plan.summary.unchanged:
        return "No changes."
    verb = "matches" if plan.summary.unchanged == 1 else "match"
    return f"No changes. {count_of(plan.summary.unchanged, 'resource')} {verb} the recorded state."


def scope(plan: Plan) -> str:
    """Return sentences on the plan's service and team, the compared revision, and the run that it undoes."""
    return " ".join((_place(plan), *(undo_sentences(plan.undo) if plan.undo else ())))


def _place(plan: Plan) -> str:
    where = "The embedded sandbox" if plan.basis.base_url == "sandbox" else f"Service {visible(plan.basis.base_url)}"
    where = f"{where}, team {quoted(plan.basis.team)}" if plan.basis.team else where
    if plan.base is None:
        return f"{where}."
    compared = compared_with(plan.base)
    return f"{compared}." if plan.base.is_in_git else f"{where}; {compared}."


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
    """A section: its kind and action, its heading (`{}` is the count and noun), and the details of its changes.

    `says` are sentences below the heading. `aspects` returns the aspects of a change that the section shows, and `None`
    for a change that does not belong to it.
    """

    kind: Kind
    action: Action
    title: str
    tone: Tone
    says: tuple[str, ...]
    aspects: Callable[[Change], Aspects | None]
    details: Callable[[Change, Room], Details]


def _taking(aspects: Callable[[Change], Aspects]) -> Callable[[Change], Aspects | None]:
    """Return a function that adds the reason to the aspects of a change; it returns `None` when there are none."""

    def found(change: Change) -> Aspects | None:
        return (*each, *change_aspects.reason(change)) if (each := aspects(change)) else None

    return found


def _explained(details: Callable[[Change, Room], Details]) -> Callable[[Change, Room], Details]:
    return lambda change, room: (*details(change, room), *change_details.reason(change))


def _remaining(change: Change) -> Aspects | None:
    """Return the aspects of an update without its removals; `None` for an update that only removes."""
    rest = change_aspects.updated(change)
    if not rest and change_details.takes(change):
        return None
    return (*rest, *change_aspects.reason(change))


def _updated(change: Change, room: Room) -> Details:
    found = (*change_details.updated(change, room), *change_details.reason(change))
    return found or (change_details.remark("sent again unchanged"),)


FORGET = "A forgotten tag stays on the service and still tags time; this project no longer manages it."
RETIRE = "A retired tag loses its keywords, so it no longer tags time; its metadata stays for reports."
DELETE = "A deleted tag is removed from the service."
OPEN = "The whole team can read a public tag; only authorized members could read it before."
UNKNOWN = "The whole team can read a public tag; who could read it before is unknown, so it counts as PRIVATE."

_REMOVED = (change_aspects.removed, change_details.removed_details)
_KEYWORDS = (_taking(change_aspects.keywords_deleted), _explained(change_details.keywords_deleted))
_METADATA = (_taking(change_aspects.metadata_deleted), _explained(change_details.metadata_deleted))
_CLEARED = (_taking(change_aspects.cleared), _explained(change_details.cleared))
_OPENED = (_taking(partial(change_aspects.opening, OPENED)), _explained(change_details.opening))
_PUBLISHED = (_taking(partial(change_aspects.opening, PUBLISHED)), _explained(change_details.opening))

REMOVALS: tuple[Topic, ...] = (
    Topic(Kind.TAG, Action.DELETE, "Delete {}", Tone.REMOVE, (DELETE,), *_REMOVED),
    Topic(Kind.TAG, Action.RETIRE, "Retire {}", Tone.REMOVE, (RETIRE,), *_REMOVED),
    Topic(Kind.TAG, Action.FORGET, "Forget {}", Tone.REMOVE, (FORGET,), *_REMOVED),
    *(
        Topic(kind, action, f"{action.word.capitalize()} {{}}", Tone.REMOVE, (), *_REMOVED)
        for kind in (Kind.CATEGORY, Kind.ACTIVITY_TYPE)
        for action in (Action.RETIRE, Action.FORGET)
    ),
    Topic(Kind.TAG, Action.UPDATE, "Delete keywords of {}", Tone.REMOVE, (), *_KEYWORDS),
    Topic(Kind.TAG, Action.UPDATE, "Delete metadata of {}", Tone.REMOVE, (), *_METADATA),
    *(Topic(kind, Action.UPDATE, "Clear fields of {}", Tone.REMOVE, (), *_CLEARED) for kind in Kind),
    Topic(Kind.TAG, Action.UPDATE, "Make {} public: PRIVATE → PUBLIC", Tone.PUBLIC, (OPEN,), *_OPENED),
    Topic(Kind.TAG, Action.CREATE, "Make {} public under a new name: PRIVATE → PUBLIC", Tone.PUBLIC, (OPEN,), *_OPENED),
    *(
        Topic(Kind.TAG, action, "Make {} of unknown visibility public", Tone.PUBLIC, (UNKNOWN,), *_PUBLISHED)
        for action in (Action.UPDATE, Action.CREATE)
    ),
)
"""All topics of removals in reading order, except for deleted categories and activity types."""

OTHERS: tuple[Topic, ...] = (
    *(
        Topic(kind, Action.CREATE, "Create {}", Tone.CREATE, (), change_aspects.created, change_details.created_details)
        for kind in Kind
    ),
    *(Topic(kind, Action.UPDATE, "Update {}", Tone.UPDATE, (), _remaining, _updated) for kind in Kind),
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


def _topics(topics: Sequence[Topic], changes: Buckets, extent: Extent) -> list[_TopicRows]:
    found = ((topic, _taking_part(topic, changes.get((topic.kind, topic.action), ()))) for topic in topics)
    return [_topic(topic, entries, extent) for topic, entries in found if entries.changes]


class _TopicEntries(NamedTuple):
    """The changes of a topic. Their aspects are computed on each call, because a plan may have very many."""

    topic: Topic
    changes: Sequence[Change]
    names: Sequence[str]

    def aspects(self, number: int) -> Aspects:
        return self.topic.aspects(self.changes[number]) or ()

    def tables(self) -> list[AspectTable]:
        if self.topic.tone is Tone.CREATE:
            return change_aspects.created_tables(self.changes)
        if self.topic.action is Action.RETIRE:
            return change_aspects.removed_tables(self.changes, lost_keywords(self.changes))
        return aspect_tables(map(self.aspects, range(len(self.changes))))


def _taking_part(topic: Topic, changes: Sequence[Change]) -> _TopicEntries:
    if topic.tone is not Tone.CREATE:
        changes = [change for change in changes if topic.aspects(change) is not None]
    return _TopicEntries(topic, changes, [change.key.name for change in changes])


def _topic(topic: Topic, entries: _TopicEntries, extent: Extent) -> _TopicRows:
    changes = entries.changes
    is_update, is_fresh = topic.action is Action.UPDATE, topic.action is Action.CREATE
    how = Folding(
        extent.fold,
        NOUNS[topic.kind],
        least=0 if is_update else MANY,
        rank=Rank.REMOVAL if topic in REMOVALS else None,
        unlike=", all different" if is_update or is_fresh else "",
        fresh=is_fresh,
        lines=topic.tone is Tone.CREATE,
        total=None if is_update or is_fresh else partial(_total, changes),
        loses=None if is_update or is_fresh else lambda number: change_details.removed_content(changes[number]),
        most=extent.most,
    )
    return _TopicRows(topic, len(changes), folded(entries, _maker(topic, entries), how), how.more)


def _maker(topic: Topic, entries: _TopicEntries) -> RowMaker:
    def details(number: int, room: Room, whole: bool) -> Details:
        change = entries.changes[number]
        if topic.tone is Tone.CREATE:
            found = change_details.created_details(change, room, whole=whole)
        else:
            room = MANY_ITEMS if room is BRIEF and topic.action is Action.UPDATE else room
            found = topic.details(change, room)
        return (*found, *_unusual(entries.aspects(number)))

    return _row_maker(topic.action.value, entries.changes, details)


def _row_maker(
    symbol: str, changes: Sequence[Change], details: Callable[[int, Room, bool], Details], **more: Any
) -> RowMaker:
    """Return the maker of rows of `changes`."""
    return RowMaker(
        symbol, lambda number: _member(changes[number]), lambda number: changes[number].source, details, **more
    )


def _unusual(aspects: Aspects) -> Details:
    """Return a remark that names the invisible and confusable letters of new values, if any."""
    texts = [text for aspect in aspects for text in _new_texts(aspect.before, aspect.after)]
    letters = dict.fromkeys(letter for text in texts for letter in unusual_letters(text))
    return (change_details.remark(f"contains {', '.join(letters)}"),) if letters else ()


def _new_texts(before: object, after: object) -> Iterator[str]:
    """Yield new texts that have letters which the old text lacks, and new items of lists."""
    if isinstance(after, str) and not after.isascii():
        letters = set(before) if isinstance(before, str) else set()
        if set(after) - letters:
            yield after
    elif isinstance(after, tuple):
        yield from (item for item in after if not (isinstance(before, tuple) and item in before))


def _total(changes: Sequence[Change], numbers: Sequence[int]) -> Details:
    """Return common details of many removals: their deleted keywords, and their reason if all have the same."""
    members = [changes[number] for number in numbers]
    reasons = {change.reason for change in members}
    return (
        *change_details.keywords_in_all([change.keywords_deleted for change in members]),
        *(change_details.reason(members[0]) if len(reasons) == 1 else ()),
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
    entries = ListedEntries(
        [*(change.key.name for change in deletes), *others],
        [*map(change_aspects.removed, deletes), *(() for _ in others)],
    )
    says = _sweep_says(len(members), first=plan.sweep.first) if plan.sweep else ()
    make = RowMaker(
        Action.DELETE.value,
        members.__getitem__,
        lambda number: members[number].source,
        lambda number, room, _: change_details.removed_details(deletes[number], room) if number < len(deletes) else (),
    )
    how = Folding(
        extent.fold,
        "activity type",
        MANY,
        Rank.REMOVAL,
        total=lambda _: (),
        loses=lambda number: change_details.removed_content(deletes[number]) if number < len(deletes) else (),
        most=extent.most,
    )
    rows = folded(entries, make, how)
    yield Section(
        f"Sweep: delete {count_of(len(members), 'activity type')}" + (" and all unknown ones" if plan.sweep else ""),
        Tone.REMOVE,
        says,
        (*rows.odd, *rows.rest),
    )


def _sweep_says(count: int, *, first: bool) -> tuple[str, ...]:
    sentence = SWEEP.format(number(count))
    return (sentence, FIRST_SWEEP) if first else (sentence,)


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
        return (_also(len(along[number]), 1), *change_details.removed_details(changes[number], room))

    def total(numbers: Sequence[int]) -> Details:
        also = _also(sum(len(along[number]) for number in numbers), len(numbers))
        return (also, *_total(changes, numbers))

    def below(numbers: Sequence[int], fold: Fold) -> tuple[SectionRow, ...]:
        members = [tag for number in numbers for tag in along[number]]
        category = f"category {changes[numbers[0]].key.name}" if len(numbers) == 1 else "their categories"
        return _cascade_rows(category, members, Extent(fold, extent.most))

    entries = ListedEntries(
        [change.key.name for change in changes],
        [change_aspects.removed_category(change, len(tags)) for change, tags in zip(changes, along, strict=True)],
    )
    how = Folding(
        extent.fold,
        "category",
        MANY,
        Rank.REMOVAL,
        total=total,
        loses=lambda number: change_details.removed_content(changes[number]),
        most=extent.most,
    )
    return folded(entries, _row_maker(Action.DELETE.value, changes, details, below=below), how)


def _also(tags: int, categories: int) -> ChangeDetail:
    which = "it" if categories == 1 else "them"
    along = f"{count_of(tags, 'tag')} in {which}, and any" if tags else f"any tags in {which}"
    return change_details.remark(f"also deletes {along} that were created outside this project")


def _cascade_rows(category: str, members: Sequence[Change], extent: Extent) -> tuple[SectionRow, ...]:
    """Return the rows of tags that are deleted with their category."""
    entries = ListedEntries([change.key.name for change in members], [*map(change_aspects.cascaded, members)])
    make = _row_maker(
        Action.DELETE.value,
        members,
        lambda number, room, _: change_details.removed_details(members[number], room),
        depth=1,
    )
    along = (change_details.remark(f"deleted with {category}"),)
    how = Folding(
        extent.fold,
        "tag",
        MANY,
        Rank.REMOVAL,
        total=lambda _: along,
        loses=lambda number: change_details.removed_content(members[number]),
        most=extent.most,
    )
    rows = folded(entries, make, how)
    return (*rows.odd, *rows.rest)


# --- notes ------------------------------------------------------------------------------------------------------------

NOTE_SYMBOL = "*"
NOTES = "These notes change nothing that is declared."


def _notes(notes: Sequence[Note], extent: Extent) -> Iterator[Section]:
    if notes:
        make = RowMaker(
            NOTE_SYMBOL,
            lambda number: _note_member(notes[number]),
            lambda number: notes[number].source,
            lambda number, *_: _note_details(notes[number]),
        )
        entries = ListedEntries([note.key.name for note in notes], [*map(change_aspects.note, notes)])
        rows = folded(
            entries, make, Folding(extent.fold, "resource", unlike=", all different", fresh=True, most=extent.most)
        )
        yield Section(count_of(len(notes), "note").capitalize(), Tone.NOTE, (NOTES,), (*rows.odd, *rows.rest))


def _note_member(note: Note) -> Member:
    return Member(visible(str(note.key)), note.source, note.key.kind.value, note.kind == "kept")


def _note_details(note: Note) -> Details:
    return (ChangeDetail(note.kind, (Span(visible(note.message)),)),)

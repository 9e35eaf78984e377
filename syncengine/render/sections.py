"""Changes of a plan → sections and rows for people, the most dangerous first; pure.

All texts in them are safe to show (`escape.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, overload

from msgspec import Struct

from syncengine.plan.aim import Note
from syncengine.plan.diff import OPENED, PUBLISHED, Action, Change
from syncengine.plan.model import Plan
from syncengine.render.escape import file_name, visible
from syncengine.render.fold import MANY, AlikeGroup, arranged, example_of, group_details
from syncengine.render.style import Look, Tone, in_repository
from syncengine.render.values import (
    ALL,
    BRIEF,
    MANY_ITEMS,
    WIDE,
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
from syncengine.render.words import NOUNS, count_of, number, place, plural
from syncengine.resource import Key, Kind, Source

MOST = 200
"""The largest number of rows of a section."""


class Fold(Enum):
    """The folding of rows: none; similar rows and long lists; or the same with each row kept behind its group.

    `LINES` folds as `LONG` does, and gives the rows of new resources all values, for a line of as many as fit.
    """

    NOTHING = "nothing"
    LONG = "long"
    LINES = "lines"
    BEHIND = "behind"


class Extent(NamedTuple):
    """The amount of a plan that is shown: its folding, and the largest number of rows of a section."""

    fold: Fold
    most: int = MOST


class Member(NamedTuple):
    """A resource of a row. Its name is safe to show; `kind` is for filters.

    When `is_gone` is set, no manifest declares the resource now, and `source` is its last place.
    """

    name: str
    source: Source | None
    kind: str = ""
    is_gone: bool = False

    def link(self, look: Look) -> str:
        """Return the URL of the resource's line at the repository's host; empty when there is none."""
        links = look.links.of_removed() if self.is_gone else look.links
        return links.line(in_repository(self.source.file, look.prefix), self.source.line) if self.source else ""


class LazyMembers(Sequence[Member]):
    """The resources of a row, each made when it is looked at: a row may count a hundred thousand."""

    def __init__(self, entries: SectionEntries, numbers: Sequence[int]) -> None:
        self._member, self._source, self._numbers = entries.member, entries.source, numbers

    def sources(self) -> Iterable[Source | None]:
        """Return the place of each resource."""
        return map(self._source, self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> Member: ...

    @overload
    def __getitem__(self, place: slice) -> list[Member]: ...

    def __getitem__(self, place: int | slice) -> Member | list[Member]:
        chosen = self._numbers[place]
        return self._member(chosen) if isinstance(chosen, int) else [self._member(number) for number in chosen]

    def __iter__(self) -> Iterator[Member]:
        return map(self._member, self._numbers)


class SectionRow(Struct, frozen=True, gc=False):
    """One line of a section: one resource, or several under a `label`, followed by `details`.

    `abridged` rows do not say all of their members. `rows` are those of the members, when kept behind the group.
    The details of a `line` are neither cut nor left out: a rendering shows as many as fit beside the name.
    """

    symbol: str
    members: Sequence[Member]
    details: Details = ()
    label: str = ""
    example: str = ""
    depth: int = 0
    abridged: bool = False
    rows: tuple[SectionRow, ...] = ()
    is_line: bool = False

    @property
    def subject(self) -> str:
        return self.label or self.members[0].name

    @property
    def names(self) -> list[str]:
        return [member.name for member in self.members]

    @property
    def place(self) -> str:
        """Return the place of a single resource; for several resources, their file or the number of their files."""
        if len(self.members) == 1:
            return place(self.members[0].source)
        members = self.members
        sources = members.sources() if isinstance(members, LazyMembers) else (member.source for member in members)
        files = {source.file for source in sources if source}
        return file_name(files.pop()) if len(files) == 1 else count_of(len(files), "file") if files else ""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, sentences that explain it, and its rows. `more` are the words after a count of hidden resources."""

    title: str
    tone: Tone
    says: tuple[str, ...]
    rows: tuple[SectionRow, ...]
    more: str = "more"

    @property
    def is_removal(self) -> bool:
        """Whether its changes take something away or open it, so that nobody may overlook them."""
        return self.tone in (Tone.REMOVE, Tone.PUBLIC)


class FoldedRows(NamedTuple):
    """The odd rows of a section, the number of their resources, and all other rows."""

    odd: tuple[SectionRow, ...]
    odd_count: int
    rest: tuple[SectionRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionEntries:
    """The resources of a section by number: what is compared and shown of each, and how their rows are folded.

    `values` are computed anew on each call, because a plan may have very many. `details` takes a number, the room, and
    whether to include every field. `below` makes the rows of what goes along with resources, which follow their row.
    Up to `least` rows, none is folded. `unlike` is added to a count of hidden
    ones. `fresh` resources are new and have no old values; `lines` says that one line can stand for each. `total`, if
    set, makes the details of a group, and `loses` the details of its first resource for an example.
    """

    names: Sequence[str]
    values: Callable[[int], Values]
    symbol: str
    member: Callable[[int], Member]
    source: Callable[[int], Source | None]
    details: Callable[[int, Room, bool], Details]
    noun: str
    depth: int = 0
    below: Callable[[Sequence[int], Fold], tuple[SectionRow, ...]] = lambda numbers, fold: ()
    least: int = 0
    unlike: str = ""
    fresh: bool = False
    lines: bool = False
    total: Callable[[Sequence[int]], Details] | None = None
    loses: Callable[[int], Details] = lambda number: ()

    @property
    def more(self) -> str:
        """The words after the number of rows that are only counted."""
        return f"more {plural(self.noun)}{self.unlike}"

    def row(self, number: int, room: Room, whole: bool, *, is_line: bool = False) -> SectionRow:
        details = self.details(number, room, whole)
        abridged = room is not ALL and not set(map(str, details)) >= set(map(str, self.details(number, ALL, whole)))
        members = (self.member(number),)
        return SectionRow(self.symbol, members, details, depth=self.depth, abridged=abridged, is_line=is_line)


def folded(entries: SectionEntries, extent: Extent) -> FoldedRows:
    """Return the rows of all entries: odd ones, then groups of similar entries, then single ones."""
    fold, count = extent.fold, len(entries.names)
    is_folded = fold is not Fold.NOTHING and count > entries.least
    found = arranged(entries.names, map(entries.values, range(count)), folding=is_folded)
    # Where no row stands for many, people read all of them, and an odd one needs no more room than the others.
    alone = len(found.singles) + (0 if is_folded else len(found.odd))
    rows = _FoldedSection(entries, extent, is_folded, fold is Fold.LINES and entries.lines and alone > 1)
    odd = (*rows.singles(found.odd, extent.most, is_odd=True), *rows.groups(found.odd_groups))
    odd_count = len(found.odd) + sum(len(group.members) for group in found.odd_groups)
    groups = rows.groups(found.groups)
    return FoldedRows(odd, odd_count, (*groups, *rows.singles(found.singles, max(MANY, extent.most - len(odd)))))


ROOMS = {
    Fold.NOTHING: (ALL, True),
    Fold.LONG: (BRIEF, False),
    Fold.LINES: (BRIEF, False),
    Fold.BEHIND: (ALL, False),
}
"""For each folding, the room of a single row's details, and whether they include every field."""


class _FoldedSection(NamedTuple):
    entries: SectionEntries
    extent: Extent
    is_folded: bool
    lines: bool

    def singles(self, numbers: Sequence[int], budget: int, *, is_odd: bool = False) -> tuple[SectionRow, ...]:
        """Return a row for each entry, up to the budget; one last row counts the others."""
        entries, fold = self.entries, self.extent.fold
        room, whole = ROOMS[fold]
        is_line = self.lines and not (is_odd and self.is_folded)
        if is_line:
            room = ALL
        elif is_odd and room is BRIEF:
            room, whole = WIDE, True
        elif is_odd and self.is_folded:  # a flag that is false may be what is odd about it
            whole = True
        most = len(numbers) if fold is Fold.NOTHING or len(numbers) <= budget + 1 else budget
        rows: list[SectionRow] = []
        for n in numbers[:most]:
            rows += (entries.row(n, room, whole, is_line=is_line), *entries.below((n,), fold))
        if rest := numbers[most:]:
            rows += self._together(rest, f"{number(len(rest))} {entries.more}", (), "", abridged=True)
        return tuple(rows)

    def groups(self, groups: Sequence[AlikeGroup]) -> tuple[SectionRow, ...]:
        """Return the rows of groups, up to the limit, and one row that counts the others."""
        entries, most = self.entries, self.extent.most
        if len(groups) <= most + 1 or self.extent.fold is Fold.BEHIND:
            most = len(groups)
        rows = [row for group in groups[:most] for row in self._group(group)]
        if more := groups[most:]:
            numbers = [n for group in more for n in group.members]
            label = f"{number(len(numbers))} more {plural(entries.noun)} in {number(len(more))} groups"
            rows += self._together(numbers, label, (), "", abridged=True)
        return tuple(rows)

    def _group(self, group: AlikeGroup) -> tuple[SectionRow, ...]:
        """Return one row for all changes to whose values the same was done, with an example when these differ."""
        entries, members = self.entries, group.members
        if entries.total:
            details, lost = entries.total(members), "; ".join(map(str, entries.loses(members[0])))
            example = f"e.g. {entries.member(members[0]).name}: {lost}" if lost else ""
            # A total names the losses of one resource at most, and an edit describes all of them.
            abridged = bool(example) or any(entries.details(n, ALL, True) for n in members)
        else:
            details = group_details(group, list(map(entries.values, members)), fresh=entries.fresh)
            first = members[0]
            example = example_of(entries.names[first], group, entries.values(first), fresh=entries.fresh)
            abridged = bool(example)
        label = f"{number(len(members))} ×" if details else count_of(len(members), entries.noun)
        return self._together(members, label, details, example, abridged=abridged)

    def _together(
        self, numbers: Sequence[int], label: str, details: Details, example: str, *, abridged: bool
    ) -> tuple[SectionRow, ...]:
        """Return one row for several entries, and the rows below it; with `BEHIND`, all these stand behind the row."""
        entries, behind, below = self.entries, list[SectionRow](), tuple[SectionRow, ...]()
        if self.extent.fold is Fold.BEHIND:
            for n in numbers:
                behind += (entries.row(n, ALL, True), *entries.below((n,), Fold.NOTHING))
        else:
            below = entries.below(numbers, self.extent.fold)
        members = LazyMembers(entries, numbers)
        abridged = abridged and not behind
        row = SectionRow(entries.symbol, members, details, label, example, entries.depth, abridged, tuple(behind))
        return (row, *below)


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
        return replace(entries, least=MANY, total=partial(_total, changes))
    return replace(
        entries,
        least=MANY if is_fresh else 0,
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
    return folded(replace(entries, least=MANY, total=total, below=below), extent)


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
    rows = folded(replace(entries, least=MANY, total=lambda _: along, depth=1), extent)
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

"""Changes of a plan → sections and rows for people, the most dangerous first; pure.

All texts in them are safe to show (`escape.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import NamedTuple

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
    def place(self) -> str:
        """Return the place of a single resource; for several resources, their file or the number of their files."""
        if len(self.members) == 1:
            return place(self.members[0].source)
        files = {member.source.file for member in self.members if member.source}
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
    Up to `least` rows, none is folded. `unlike` is added to a count of hidden ones. `fresh` resources are new and have
    no old values; `lines` says that one line can stand for each. `total`, if set, makes the details of a group, and
    `loses` the details of its first resource for an example.
    """

    names: Sequence[str]
    members: Sequence[Member]
    values: Callable[[int], Values]
    symbol: str
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


def folded(entries: SectionEntries, extent: Extent) -> FoldedRows:
    """Return the rows of all entries: odd ones, then groups of similar entries, then single ones."""
    (fold, most), count = extent, len(entries.names)
    is_folded = fold is not Fold.NOTHING and count > entries.least
    found = arranged(entries.names, map(entries.values, range(count)), folding=is_folded)
    # Where no row stands for many, people read all of them, and an odd one needs no more room than the others.
    alone = len(found.singles) + (0 if is_folded else len(found.odd))
    in_lines = fold is Fold.LINES and entries.lines and alone > 1

    def row(number: int, room: Room, whole: bool, *, is_line: bool = False) -> SectionRow:
        details = entries.details(number, room, whole)
        abridged = room is not ALL and not set(map(str, details)) >= set(map(str, entries.details(number, ALL, whole)))
        members = (entries.members[number],)
        return SectionRow(entries.symbol, members, details, depth=entries.depth, abridged=abridged, is_line=is_line)

    def together(
        numbers: Sequence[int], label: str, details: Details = (), example: str = "", *, abridged: bool = True
    ) -> Iterator[SectionRow]:
        """Yield one row for several entries, and the rows below it; with `BEHIND`, all these stand behind the row."""
        behind = list[SectionRow]()
        if fold is Fold.BEHIND:
            for n in numbers:
                behind += (row(n, ALL, True), *entries.below((n,), Fold.NOTHING))
        members = [entries.members[n] for n in numbers]
        abridged = abridged and not behind
        yield SectionRow(entries.symbol, members, details, label, example, entries.depth, abridged, tuple(behind))
        yield from () if behind else entries.below(numbers, fold)

    def singles(numbers: Sequence[int], budget: int, *, is_odd: bool = False) -> Iterator[SectionRow]:
        """Yield a row for each entry, up to the budget; one last row counts the others."""
        is_apart = is_odd and is_folded
        is_line = in_lines and not is_apart
        room = ALL if is_line or fold in (Fold.NOTHING, Fold.BEHIND) else WIDE if is_odd else BRIEF
        # A flag that is false may be what is odd about a resource; elsewhere it says what silence says.
        whole = fold is Fold.NOTHING or (not is_line and (is_apart or room is WIDE))
        shown = len(numbers) if fold is Fold.NOTHING or len(numbers) <= budget + 1 else budget
        for n in numbers[:shown]:
            yield row(n, room, whole, is_line=is_line)
            yield from entries.below((n,), fold)
        if rest := numbers[shown:]:
            yield from together(rest, f"{number(len(rest))} {entries.more}")

    def of_group(group: AlikeGroup) -> Iterator[SectionRow]:
        """Yield one row for all changes to whose values the same was done, with an example when these differ."""
        first = group.members[0]
        if entries.total:
            details, lost = entries.total(group.members), "; ".join(map(str, entries.loses(first)))
            example = f"e.g. {entries.members[first].name}: {lost}" if lost else ""
            # A total names the losses of one resource at most, and an edit describes all of them.
            abridged = bool(example) or any(entries.details(n, ALL, True) for n in group.members)
        else:
            details = group_details(group, list(map(entries.values, group.members)), fresh=entries.fresh)
            example = example_of(entries.names[first], group, entries.values(first), fresh=entries.fresh)
            abridged = bool(example)
        size = len(group.members)
        label = f"{number(size)} ×" if details else count_of(size, entries.noun)
        return together(group.members, label, details, example, abridged=abridged)

    def groups(all_groups: Sequence[AlikeGroup]) -> Iterator[SectionRow]:
        """Yield the rows of groups, up to the limit, and one row that counts the others."""
        shown = len(all_groups) if len(all_groups) <= most + 1 or fold is Fold.BEHIND else most
        for group in all_groups[:shown]:
            yield from of_group(group)
        if more := all_groups[shown:]:
            numbers = [n for group in more for n in group.members]
            label = f"{number(len(numbers))} more {plural(entries.noun)} in {number(len(more))} groups"
            yield from together(numbers, label)

    odd = (*singles(found.odd, most, is_odd=True), *groups(found.odd_groups))
    odd_count = len(found.odd) + sum(len(group.members) for group in found.odd_groups)
    rest = (*groups(found.groups), *singles(found.singles, max(MANY, most - len(odd))))
    return FoldedRows(odd, odd_count, rest)


GONE = frozenset({Action.DELETE, Action.RETIRE, Action.FORGET})
"""The actions by which a resource leaves the project."""

Buckets = Mapping[tuple[Kind, Action], Sequence[Change]]


def sections_of(plan: Plan, fold: Fold, most: int = MOST) -> tuple[Section, ...]:
    """Return all sections of a plan: removals, tags made public, odd changes, other changes, and notes.

    Each section has at most `most` rows.
    """
    extent = Extent(fold, most)
    changes: dict[tuple[Kind, Action], list[Change]] = defaultdict(list)
    cascaded: list[Change] = []
    for change in plan.changes:
        (cascaded if change.cascade else changes[change.key.kind, change.action]).append(change)
    others = _topics(OTHERS, changes, extent)
    # Where people read every row of every section, the odd ones need no section of their own.
    parts_odd = len(others) > 1 and not all(
        each.size <= MANY and not any(row.label for row in (*each.rows.odd, *each.rows.rest)) for each in others
    )
    return (
        *_sweep(plan, changes[Kind.ACTIVITY_TYPE, Action.DELETE], extent),
        *_category_deletes(changes[Kind.CATEGORY, Action.DELETE], cascaded, extent),
        *(each.whole() for each in _topics(REMOVALS, changes, extent)),
        *(each.odd() for each in others if parts_odd and each.rows.odd),
        *(each.rest() for each in others if parts_odd and each.rows.rest),
        *(each.whole() for each in others if not parts_odd),
        *_notes(plan.notes, extent),
    )


def is_abridged(sections: Iterable[Section]) -> bool:
    """Return whether some rows leave out details of their resources."""
    return any(row.abridged for section in sections for row in section.rows)


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

    def section(self, rows: tuple[SectionRow, ...], count: int, unlike: str = "") -> Section:
        """Return the section of some of the rows, which stand for `count` changes."""
        title = self.topic.title.format(count_of(count, NOUNS[self.topic.kind]))
        return Section(title + unlike, self.topic.tone, self.topic.says, rows, self.more)

    def odd(self) -> Section:
        count = self.rows.odd_count
        return self.section(self.rows.odd, count, f", unlike the other {number(self.size - count)}")

    def rest(self) -> Section:
        return self.section(self.rows.rest, self.size - self.rows.odd_count)

    def whole(self) -> Section:
        return self.section((*self.rows.odd, *self.rows.rest), self.size)


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
    if topic.action in GONE:
        return _removal_entries(changes, NOUNS[topic.kind])

    def values(number: int) -> Values:
        return topic.values(changes[number]) or ()

    def details(number: int, room: Room, whole: bool) -> Details:
        if topic.tone is Tone.CREATE:
            return (*created_details(changes[number], room, whole=whole), *unusual(values(number)))
        found = value_details(values(number), MANY_ITEMS if room is BRIEF and topic.action is Action.UPDATE else room)
        return (*found, *unusual(values(number))) if found else (remark("sent again unchanged"),)

    return SectionEntries(
        names=[change.key.name for change in changes],
        members=list(map(_member, changes)),
        values=values,
        symbol=topic.action.value,
        details=details,
        noun=NOUNS[topic.kind],
        least=MANY if topic.action is Action.CREATE else 0,
        unlike=", all different",
        fresh=topic.action is Action.CREATE,
        lines=topic.tone is Tone.CREATE,
    )


def _removal_entries(changes: Sequence[Change], noun: str) -> SectionEntries:
    """Return the entries of removals; an example of many shows the content that one of them loses."""
    return SectionEntries(
        names=[change.key.name for change in changes],
        members=list(map(_member, changes)),
        values=lambda number: removed(changes[number]),
        symbol=changes[0].action.value,
        details=lambda number, room, _: removed_details(changes[number], room),
        noun=noun,
        least=MANY,
        total=partial(_total, changes),
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
    planned = {change.key.name for change in deletes}
    codes = [code for code in plan.sweep.known if code not in planned] if plan.sweep else []
    unplanned = [Change(key=Key(Kind.ACTIVITY_TYPE, c), action=Action.DELETE, source=None) for c in codes]
    changes = [*deletes, *unplanned]
    title = f"Sweep: delete {count_of(len(changes), 'activity type')}{' and all unknown ones' if plan.sweep else ''}"
    says = (SWEEP.format(number(len(changes))), *((FIRST_SWEEP,) if plan.sweep.first else ())) if plan.sweep else ()
    if changes:
        rows = folded(replace(_removal_entries(changes, "activity type"), total=lambda _: ()), extent)
        yield Section(title, Tone.REMOVE, says, (*rows.odd, *rows.rest))
    elif plan.sweep:
        yield Section(title, Tone.REMOVE, says, ())


# --- categories that take tags along ----------------------------------------------------------------------------------

CATEGORY = "Deleting a category also deletes every tag that is still in it."


def _category_deletes(changes: Sequence[Change], cascaded: Sequence[Change], extent: Extent) -> Iterator[Section]:
    """Yield the section of deleted categories, each followed by the tags deleted with it (docs/planning.md 2.2).

    There may be tags alone, once an earlier run has deleted their category. Categories are alike that take about as
    many tags and keywords along, to the next power of two.
    """
    cascades: dict[Key, list[Change]] = defaultdict(list)
    for change in cascaded:
        if change.cascade:
            cascades[change.cascade].append(change)
    along = [cascades.pop(change.key, []) for change in changes]

    def also(tags: int, categories: int) -> ChangeDetail:
        which = "it" if categories == 1 else "them"
        some = f"{count_of(tags, 'tag')} in {which}, and any" if tags else f"any tags in {which}"
        return remark(f"also deletes {some} that were created outside this project")

    def total(numbers: Sequence[int]) -> Details:
        return (also(sum(len(along[n]) for n in numbers), len(numbers)), *_total(changes, numbers))

    def below(numbers: Sequence[int], fold: Fold) -> tuple[SectionRow, ...]:
        category = f"category {changes[numbers[0]].key.name}" if len(numbers) == 1 else "their categories"
        return _cascade_rows(category, [tag for n in numbers for tag in along[n]], Extent(fold, extent.most))

    rows: list[SectionRow] = []
    title = f"Delete {count_of(len(cascaded), 'tag')} of deleted categories"
    if changes:
        entries = replace(
            _removal_entries(changes, "category"),
            values=lambda n: removed(changes[n], tags=len(along[n])),
            details=lambda n, room, _: (also(len(along[n]), 1), *removed_details(changes[n], room)),
            total=total,
            below=below,
        )
        found = folded(entries, extent)
        rows += (*found.odd, *found.rest)
        tags = f" and {count_of(len(cascaded), 'tag')} in {'it' if len(changes) == 1 else 'them'}" if cascaded else ""
        title = f"Delete {count_of(len(changes), 'category')}{tags}"
    for key, members in cascades.items():
        rows += _cascade_rows(str(key), members, extent)
    if rows:
        yield Section(title, Tone.REMOVE, (CATEGORY,), tuple(rows), "more categories")


def _cascade_rows(category: str, members: Sequence[Change], extent: Extent) -> tuple[SectionRow, ...]:
    """Return the rows of tags that are deleted with their category."""
    if not members:
        return ()

    def values(number: int) -> Values:
        own = removed(members[number])
        return own[1:] if members[number].reason else own  # which is the deletion of its category

    along = (remark(f"deleted with {category}"),)
    entries = replace(_removal_entries(members, "tag"), values=values, total=lambda _: along, depth=1)
    rows = folded(entries, extent)
    return (*rows.odd, *rows.rest)


# --- notes ------------------------------------------------------------------------------------------------------------

NOTE_SYMBOL = "*"
NOTES = "These notes change nothing that is declared."


def _notes(notes: Sequence[Note], extent: Extent) -> Iterator[Section]:
    if notes:
        entries = SectionEntries(
            names=[note.key.name for note in notes],
            members=[Member(visible(str(n.key)), n.source, n.key.kind.value, n.kind == "kept") for n in notes],
            values=lambda number: note_values(notes[number]),
            symbol=NOTE_SYMBOL,
            details=lambda number, room, _: value_details(note_values(notes[number]), room),
            noun="resource",
            unlike=", all different",
            fresh=True,
        )
        rows = folded(entries, extent)
        yield Section(count_of(len(notes), "note").capitalize(), Tone.NOTE, (NOTES,), (*rows.odd, *rows.rest))

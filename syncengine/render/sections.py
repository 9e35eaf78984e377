"""Changes of a plan → sections and rows for people, the most dangerous first; pure.

All texts in them are safe to show (`escape.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import NamedTuple

from msgspec import Struct, structs

from syncengine.plan import gate
from syncengine.plan.diff import OPENED, PUBLISHED, Action
from syncengine.render.escape import file_name, visible
from syncengine.render.fold import MANY, AlikeGroup, Arrangement, arranged, example_of, group_details
from syncengine.render.formats import ChangeItem, KeywordChange, MetadataChange, Place, PlanFormat
from syncengine.render.style import Look, Tone, in_repository
from syncengine.render.values import (
    ALL,
    BRIEF,
    MANY_ITEMS,
    WIDE,
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
from syncengine.resource import Kind

MOST = 200
"""The largest number of rows of a section: more of them nobody reads."""


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
    source: Place | None
    kind: str = ""
    is_gone: bool = False

    def link(self, look: Look) -> str:
        """Return the URL of the resource's line at the repository's host; empty when there is none."""
        links = look.links.of_removed() if self.is_gone else look.links
        return links.line(in_repository(self.source.file, look.prefix), self.source.line) if self.source else ""


class SectionRow(Struct, frozen=True, gc=False):
    """One line of a section: one resource, or several under a `label`, followed by `details`.

    `abridged` rows do not say all of their members. `rows` are those of the members, when kept behind the group.
    `is_line`: of very many such rows, each should take one line. `common` is what all members have, where no details
    say it.
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
    common: Details = ()

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


# --- the rows of alike and unlike resources


class GroupWords(NamedTuple):
    """The words for a group: what was done to its members, and an example. `abridged`: they leave something out.

    `common` are values that all members have, where the details do not say them.
    """

    details: Details
    example: str
    abridged: bool
    common: Details = ()


class FoldedRows(NamedTuple):
    """The odd rows of a section, the number of their resources, and all other rows."""

    odd: tuple[SectionRow, ...]
    odd_count: int
    rest: tuple[SectionRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """The resources of a section by number: what is compared and shown of each, and the words for many.

    `values` are computed anew on each call, because a plan may have very many. `details` takes a number, the room, and
    whether to include every field. `below` makes the rows of what goes along with resources, which follow their row;
    `in_common` returns the details that all of many resources have.
    Up to `least` rows, none is folded. `more` are the words after the number of rows that are only counted.
    """

    names: Sequence[str]
    members: Sequence[Member]
    symbol: str
    noun: str
    more: str
    values: Callable[[int], Values]
    details: Callable[[int, Room, bool], Details]
    of_group: Callable[[AlikeGroup], GroupWords]
    below: Callable[[Sequence[int], Fold], tuple[SectionRow, ...]] = lambda numbers, fold: ()
    in_common: Callable[[Sequence[int]], Details] = lambda numbers: ()
    depth: int = 0
    least: int = 0
    fresh: bool = False
    are_lines: bool = False

    def arranged(self, fold: Fold) -> Arrangement:
        is_folded = fold is not Fold.NOTHING and len(self.names) > self.least
        values = map(self.values, range(len(self.names)))
        return arranged(self.names, values, folding=is_folded, fresh=self.fresh)

    def row(self, number: int, room: Room, whole: bool, *, is_line: bool = False) -> SectionRow:
        """Return the row of one resource."""
        details = self.details(number, room, whole)
        abridged = room is not ALL and not set(map(str, details)) >= set(map(str, self.details(number, ALL, whole)))
        members = (self.members[number],)
        return SectionRow(self.symbol, members, details, depth=self.depth, abridged=abridged, is_line=is_line)

    def together(self, numbers: Sequence[int], label: str, fold: Fold, words: GroupWords) -> Iterator[SectionRow]:
        """Yield one row for several resources, and the rows below it; with `BEHIND`, all these stand behind the row."""
        behind = list[SectionRow]()
        if fold is Fold.BEHIND:
            for n in numbers:
                behind += (self.row(n, ALL, True), *self.below((n,), Fold.NOTHING))
        yield SectionRow(
            self.symbol,
            [self.members[n] for n in numbers],
            words.details,
            label,
            words.example,
            self.depth,
            words.abridged and not behind,
            tuple(behind),
            common=words.common,
        )
        yield from () if behind else self.below(numbers, fold)


def folded(entries: Entries, extent: Extent) -> FoldedRows:
    """Return the rows of all entries: odd ones, then groups of similar entries, then single ones."""
    (fold, most), found = extent, entries.arranged(extent.fold)
    is_whole = fold is Fold.NOTHING

    def singles(numbers: Sequence[int], budget: int, *, is_odd: bool) -> Iterator[SectionRow]:
        """Yield a row for each number, up to the budget; one last row counts the others."""
        is_line = fold is Fold.LINES and entries.are_lines and not is_odd
        room = ALL if is_line or fold in (Fold.NOTHING, Fold.BEHIND) else WIDE if is_odd else BRIEF
        shown = len(numbers) if is_whole or len(numbers) <= budget + 1 else budget
        for n in numbers[:shown]:
            # A flag that is false may be what is odd about a resource; elsewhere it says what silence says.
            yield entries.row(n, room, is_whole or is_odd, is_line=is_line)
            yield from entries.below((n,), fold)
        if rest := numbers[shown:]:
            words = GroupWords((), "", abridged=True, common=entries.in_common(rest) if is_line else ())
            yield from entries.together(rest, f"{number(len(rest))} {entries.more}", fold, words)

    def groups(alike: Sequence[AlikeGroup]) -> Iterator[SectionRow]:
        """Yield a row for each group, up to the limit, and one row that counts the others."""
        shown = len(alike) if len(alike) <= most + 1 or fold is Fold.BEHIND else most
        for group in alike[:shown]:
            words, size = entries.of_group(group), len(group.members)
            label = f"{number(size)} ×" if words.details else count_of(size, entries.noun)
            yield from entries.together(group.members, label, fold, words)
        if more := alike[shown:]:
            numbers = [n for group in more for n in group.members]
            label = f"{number(len(numbers))} more {plural(entries.noun)} in {number(len(more))} groups"
            yield from entries.together(numbers, label, fold, GroupWords((), "", abridged=True))

    odd = (*singles(found.odd, most, is_odd=True), *groups(found.odd_groups))
    odd_count = len(found.odd) + sum(len(group.members) for group in found.odd_groups)
    rest = (*groups(found.groups), *singles(found.singles, max(MANY, most - len(odd)), is_odd=False))
    return FoldedRows(odd, odd_count, rest)


def _compared(entries: Entries, group: AlikeGroup, *, fresh: bool) -> GroupWords:
    """Return what was done to the values of a group, with an example when these differ; `fresh` ones have no past."""
    details = group_details(group, list(map(entries.values, group.members)), fresh=fresh)
    first = group.members[0]
    example = example_of(entries.names[first], group, entries.values(first), fresh=fresh)
    return GroupWords(details, example, abridged=bool(example))


# --- sections

CREATE, UPDATE, DELETE = Action.CREATE.word, Action.UPDATE.word, Action.DELETE.word
GONE = frozenset({DELETE, Action.RETIRE.word, Action.FORGET.word})
"""The actions by which a resource leaves the project."""

SYMBOLS = {action.word: action.value for action in Action}
NO_KEYWORDS, NO_METADATA = KeywordChange((), ()), MetadataChange({}, ())

Buckets = Mapping[tuple[Kind, str], Sequence[ChangeItem]]


def sections_of(plan: PlanFormat, fold: Fold, most: int = MOST) -> tuple[Section, ...]:
    """Return all sections of a plan: removals, tags made public, odd changes, other changes, and notes.

    Each section has at most `most` rows.
    """
    extent = Extent(fold, most)
    changes: dict[tuple[Kind, str], list[ChangeItem]] = defaultdict(list)
    cascaded: list[ChangeItem] = []
    for change in plan.changes:
        (cascaded if change.cascade else changes[change.kind, change.action]).append(change)
    others = _topics(OTHERS, changes, extent)
    # Where people read every row of every section, the odd ones need no section of their own.
    parts_odd = len(others) > 1 and not all(
        each.size <= MANY and not any(row.label for row in (*each.rows.odd, *each.rows.rest)) for each in others
    )
    return (
        *_sweep(plan, changes[Kind.ACTIVITY_TYPE, DELETE], extent),
        *_category_deletes(changes[Kind.CATEGORY, DELETE], cascaded, extent),
        *(each.section() for each in _topics(REMOVALS, changes, extent)),
        *(each.section(odd=True, rest=False) for each in others if parts_odd and each.rows.odd),
        *(each.section(odd=not parts_odd) for each in others if each.rows.rest or not parts_odd),
        *_notes(plan, extent),
    )


def is_abridged(sections: Sequence[Section]) -> bool:
    """Return whether some rows leave out details of their resources."""
    return any(row.abridged for section in sections for row in section.rows)


class Topic(NamedTuple):
    """A section: its kind and action, its heading (`{}` is the count and noun), and the values of its changes.

    `says` are sentences below the heading. `values` returns the values of a change that the section compares, and shows
    unless the resource is removed; `None` for a change that does not belong to it.
    """

    kind: Kind
    action: str
    title: str
    tone: Tone
    says: tuple[str, ...]
    values: Callable[[ChangeItem], Values | None]


def _with_reason(values: Callable[[ChangeItem], Values]) -> Callable[[ChangeItem], Values | None]:
    """Return a function that adds the reason to the values of a change; it returns `None` when there are none."""
    return lambda change: (*found, *reason(change)) if (found := values(change)) else None


def _remaining(change: ChangeItem) -> Values | None:
    """Return the values of an update without its removals; `None` for an update that only removes."""
    removes = change.keywords.delete or change.metadata.delete or change.opening is not None
    if not (rest := updated(change)) and (removes or any(field.clears for field in change.fields)):
        return None
    return (*rest, *reason(change))


FORGETTING = "A forgotten tag stays on the service and still tags time; this project no longer manages it."
RETIRING = "A retired tag loses its keywords, so it no longer tags time; its metadata stays for reports."
DELETING = "A deleted tag is removed from the service."
OPEN = "The whole team can read a public tag; only authorized members could read it before."
UNKNOWN = "The whole team can read a public tag; who could read it before is unknown, so it counts as PRIVATE."

_OPENED, _PUBLISHED = _with_reason(partial(opened, OPENED.before)), _with_reason(partial(opened, PUBLISHED.before))

REMOVALS: tuple[Topic, ...] = (
    Topic(Kind.TAG, DELETE, "Delete {}", Tone.REMOVE, (DELETING,), removed),
    Topic(Kind.TAG, Action.RETIRE.word, "Retire {}", Tone.REMOVE, (RETIRING,), removed),
    Topic(Kind.TAG, Action.FORGET.word, "Forget {}", Tone.REMOVE, (FORGETTING,), removed),
    *(
        Topic(kind, action.word, f"{action.word.capitalize()} {{}}", Tone.REMOVE, (), removed)
        for kind in (Kind.CATEGORY, Kind.ACTIVITY_TYPE)
        for action in (Action.RETIRE, Action.FORGET)
    ),
    Topic(Kind.TAG, UPDATE, "Delete keywords of {}", Tone.REMOVE, (), _with_reason(keywords_deleted)),
    Topic(Kind.TAG, UPDATE, "Delete metadata of {}", Tone.REMOVE, (), _with_reason(metadata_deleted)),
    *(Topic(kind, UPDATE, "Clear fields of {}", Tone.REMOVE, (), _with_reason(cleared)) for kind in Kind),
    Topic(Kind.TAG, UPDATE, "Make {} public: PRIVATE → PUBLIC", Tone.PUBLIC, (OPEN,), _OPENED),
    Topic(Kind.TAG, CREATE, "Make {} public under a new name: PRIVATE → PUBLIC", Tone.PUBLIC, (OPEN,), _OPENED),
    *(
        Topic(Kind.TAG, action, "Make {} of unknown visibility public", Tone.PUBLIC, (UNKNOWN,), _PUBLISHED)
        for action in (UPDATE, CREATE)
    ),
)
"""All topics of removals in reading order, except for deleted categories and activity types."""

OTHERS: tuple[Topic, ...] = (
    *(Topic(kind, CREATE, "Create {}", Tone.CREATE, (), created) for kind in Kind),
    *(Topic(kind, UPDATE, "Update {}", Tone.UPDATE, (), _remaining) for kind in Kind),
)


class _TopicRows(NamedTuple):
    """A topic that has changes, with its rows. `size` is the number of changes."""

    topic: Topic
    size: int
    rows: FoldedRows
    more: str

    def section(self, *, odd: bool = True, rest: bool = True) -> Section:
        """Return the section of the odd rows, of the others, or of both."""
        count = self.rows.odd_count * odd + (self.size - self.rows.odd_count) * rest
        title = self.topic.title.format(count_of(count, NOUNS[self.topic.kind]))
        unlike = "" if rest else f", unlike the other {number(self.size - count)}"
        rows = (*(self.rows.odd if odd else ()), *(self.rows.rest if rest else ()))
        return Section(title + unlike, self.topic.tone, self.topic.says, rows, self.more)


def _topics(topics: Sequence[Topic], buckets: Buckets, extent: Extent) -> list[_TopicRows]:
    found = []
    for topic in topics:
        changes = buckets.get((topic.kind, topic.action), ())
        if topic.action == UPDATE or topic.tone is Tone.PUBLIC:
            changes = [change for change in changes if topic.values(change) is not None]
        if changes:
            entries = _removals(changes) if topic.action in GONE else _values_of(topic, changes)
            found.append(_TopicRows(topic, len(changes), folded(entries, extent), entries.more))
    return found


def _members(changes: Sequence[ChangeItem]) -> list[Member]:
    return [Member(visible(c.name), c.source, c.kind, c.action in GONE) for c in changes]


def _values_of(topic: Topic, changes: Sequence[ChangeItem]) -> Entries:
    """Return the entries of changes that set something."""

    def values(number: int) -> Values:
        return topic.values(changes[number]) or ()

    def details(number: int, room: Room, whole: bool) -> Details:
        if topic.tone is Tone.CREATE:  # letters that deceive come first, so that the line is not cut
            return (*unusual(values(number)), *created_details(changes[number], room, whole=whole))
        found = value_details(values(number), MANY_ITEMS if room is BRIEF and topic.action == UPDATE else room)
        return (*found, *unusual(values(number))) if found else (remark("sent again unchanged"),)

    def in_common(numbers: Sequence[int]) -> Details:
        first, *others = (changes[number] for number in numbers)
        fields = [field for field in first.fields if all(field in change.fields for change in others)]
        bare = structs.replace(first, fields=fields, keywords=NO_KEYWORDS, metadata=NO_METADATA)
        return created_details(bare, ALL, whole=False)

    is_new = topic.action == CREATE
    entries = Entries(
        names=[change.name for change in changes],
        members=_members(changes),
        symbol=SYMBOLS[topic.action],
        noun=NOUNS[topic.kind],
        more=f"more {plural(NOUNS[topic.kind])}, all different",
        values=values,
        details=details,
        of_group=lambda group: _compared(entries, group, fresh=is_new),
        least=MANY if is_new else 0,
        fresh=is_new,
        in_common=in_common,
        are_lines=topic.tone is Tone.CREATE and len(changes) > 1,
    )
    return entries


def _removals(
    changes: Sequence[ChangeItem],
    values: Callable[[int], Values] | None = None,
    also: Callable[[Sequence[int]], Details] = lambda numbers: (),
    common: Callable[[Sequence[int]], Details] | None = None,
) -> Entries:
    """Return the entries of removals; an example of many shows the content that one of them loses.

    `also` are further details of one or more of them. `common`, instead of these and of the lost keywords and the
    reason, is said of a group.
    """

    def in_common(numbers: Sequence[int]) -> Details:
        members = [changes[number] for number in numbers]
        is_same = len({change.reason for change in members}) == 1
        lost = keywords_in_all([change.keywords.delete for change in members])
        return (*also(numbers), *lost, *(value_details(reason(members[0]), BRIEF) if is_same else ()))

    def details(number: int, room: Room, whole: bool) -> Details:
        return (*also((number,)), *removed_details(changes[number], room))

    def of_group(group: AlikeGroup) -> GroupWords:
        first = changes[group.members[0]]
        loses = "; ".join(map(str, removed_content(first)))
        example = f"e.g. {visible(first.name)}: {loses}" if loses else ""
        # What is in common names the losses of one resource at most, and an edit describes all of them.
        abridged = bool(example) or any(details(n, ALL, True) for n in group.members)
        return GroupWords((common or in_common)(group.members), example, abridged)

    noun = NOUNS[changes[0].kind]
    return Entries(
        names=[change.name for change in changes],
        members=_members(changes),
        symbol=SYMBOLS[changes[0].action],
        noun=noun,
        more=f"more {plural(noun)}",
        values=values or (lambda number: removed(changes[number])),
        details=details,
        of_group=of_group,
        least=MANY,
    )


SWEEP = (
    "Completing the sync session deletes every activity type of the team that these manifests do not declare: "
    "{} recorded in this state, and any that this project does not know."
)
FIRST_SWEEP = (
    "This is the first sync session of this state: approving it makes this project the owner of the team's whole list"
    " of activity types."
)


def _sweep(plan: PlanFormat, deletes: Sequence[ChangeItem], extent: Extent) -> Iterator[Section]:
    """Yield the section of a sweep: deleting activity types affects the whole team (docs/planning.md 3.1)."""
    sweep, planned = plan.sweep, {change.name for change in deletes}
    codes = [code for code in sweep.known if code not in planned] if sweep else []
    kind = Kind.ACTIVITY_TYPE
    unplanned = [ChangeItem(f"{kind}/{c}", kind, DELETE, None, [], NO_KEYWORDS, NO_METADATA, None) for c in codes]
    changes = [*deletes, *unplanned]
    if not (changes or sweep):
        return
    title = f"Sweep: delete {count_of(len(changes), 'activity type')}{' and all unknown ones' if sweep else ''}"
    says = (
        (
            SWEEP.format(number(len(changes))),
            *((FIRST_SWEEP,) if any(unit.kind == gate.FIRST_SWEEP for unit in plan.gate.units) else ()),
        )
        if sweep
        else ()
    )
    rows = folded(_removals(changes, common=lambda numbers: ()), extent) if changes else FoldedRows((), 0, ())
    yield Section(title, Tone.REMOVE, says, (*rows.odd, *rows.rest))


CATEGORY = "Deleting a category also deletes every tag that is still in it."


def _category_deletes(
    changes: Sequence[ChangeItem], cascaded: Sequence[ChangeItem], extent: Extent
) -> Iterator[Section]:
    """Yield the section of deleted categories, each followed by the tags deleted with it (docs/planning.md 2.2).

    There may be tags alone, once an earlier run has deleted their category. Categories are alike that take about as
    many tags and keywords along, to the next power of two.
    """
    cascades: dict[str, list[ChangeItem]] = defaultdict(list)
    for change in cascaded:
        if change.cascade:
            cascades[change.cascade].append(change)
    along = [cascades.pop(change.address, []) for change in changes]

    def also(numbers: Sequence[int]) -> Details:
        tags, which = sum(len(along[n]) for n in numbers), "it" if len(numbers) == 1 else "them"
        some = f"{count_of(tags, 'tag')} in {which}, and any" if tags else f"any tags in {which}"
        return (remark(f"also deletes {some} that were created outside this project"),)

    def tags_of(category: str, members: Sequence[ChangeItem], fold: Fold) -> tuple[SectionRow, ...]:
        """Return the rows of tags that are deleted with their category, which is the reason of each."""

        def values(number: int) -> Values:
            own = removed(members[number])
            return own[1:] if members[number].reason else own

        if not members:
            return ()
        entries = _removals(members, values, common=lambda numbers: (remark(f"deleted with {category}"),))
        rows = folded(replace(entries, depth=1), Extent(fold, extent.most))
        return (*rows.odd, *rows.rest)

    def below(numbers: Sequence[int], fold: Fold) -> tuple[SectionRow, ...]:
        category = f"category {changes[numbers[0]].name}" if len(numbers) == 1 else "their categories"
        return tags_of(category, [tag for n in numbers for tag in along[n]], fold)

    rows: list[SectionRow] = []
    title = f"Delete {count_of(len(cascaded), 'tag')} of deleted categories"
    if changes:
        entries = _removals(changes, lambda n: removed(changes[n], tags=len(along[n])), also)
        found = folded(replace(entries, below=below), extent)
        rows += (*found.odd, *found.rest)
        tags = f" and {count_of(len(cascaded), 'tag')} in {'it' if len(changes) == 1 else 'them'}" if cascaded else ""
        title = f"Delete {count_of(len(changes), 'category')}{tags}"
    for category, members in cascades.items():
        rows += tags_of(category, members, extent.fold)
    if rows:
        yield Section(title, Tone.REMOVE, (CATEGORY,), tuple(rows), "more categories")


NOTE_SYMBOL = "*"
NOTES = "These notes change nothing that is declared."


def _notes(plan: PlanFormat, extent: Extent) -> Iterator[Section]:
    if notes := plan.notes:
        entries = Entries(
            names=[note.address.partition("/")[2] for note in notes],
            members=[
                Member(visible(each.address), each.source, each.address.partition("/")[0], each.kind == "kept")
                for each in notes
            ],
            symbol=NOTE_SYMBOL,
            noun="resource",
            more="more resources, all different",
            values=lambda number: note_values(notes[number]),
            details=lambda number, room, _: value_details(note_values(notes[number]), room),
            of_group=lambda group: _compared(entries, group, fresh=True),
        )
        rows = folded(entries, extent)
        yield Section(count_of(len(notes), "note").capitalize(), Tone.NOTE, (NOTES,), (*rows.odd, *rows.rest))

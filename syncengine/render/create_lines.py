"""New resources of a section → a line for each, and what they share; pure.

A line has the name, the label or description as a title, what must be said, and as many of the other values as all
lines have room for. What must be said is what the shared values do not tell: another visibility, a remark, a former
name, and a field that no other line has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from syncengine.render.escape import LONGEST, cells, cut, file_name
from syncengine.render.rows import SectionRow
from syncengine.render.style import Look, lettered
from syncengine.render.words import place

INDENT, GAP = "  ", "  "
NAME_COLUMN = 28
"""The widest name, with its symbol, beside which all titles of a section begin in one column."""
LEAST_TITLE = 20
"""The columns that a cut title keeps, enough for two or three words; with fewer, the place goes below instead."""
OFTEN = 10
"""Among this many lines, one may differ from a value that is said of all."""
VISIBILITY = "visibility"
FORMER = "renamed from"
ORDER = (VISIBILITY, "category", "tagCategoryId", "description", "keywords", "metadata")
"""The order in which values are said and are chosen for a line; others follow as they are declared."""


class CreateLine(NamedTuple):
    """One new resource: its name with the title, the facts beside or below it, and its place."""

    name: str
    facts: str
    place: str


class CreateLines(NamedTuple):
    """The lines of a section, the words for what they share, and whether anything is left out."""

    shared: str
    lines: list[CreateLine]
    is_abridged: bool


class _New(NamedTuple):
    """A new resource in the letters of the terminal, with its values by label."""

    head: str
    title: str
    values: Mapping[str, str]
    remarks: tuple[str, ...]

    @property
    def brief(self) -> dict[str, str]:
        """The values as a line shows them. All former names are shown."""
        return {label: text if label == FORMER else cut(text, LONGEST) for label, text in self.values.items()}

    def name(self, column: int) -> str:
        return _padded(self.head, column) + GAP if self.title else self.head


def create_lines(rows: Sequence[SectionRow], look: Look) -> CreateLines:
    """Return the lines of rows whose details are neither cut nor left out."""
    title = "label" if any(detail.label == "label" for row in rows for detail in row.details) else "description"
    new = [_new(row, title, look) for row in rows]
    template, places = _places(rows)
    shared, is_each = _shared(new)
    room = look.width - max((cells(each) + len(GAP) for each in places if cells(each) <= look.width // 2), default=0)
    column = max((cells(each.head) for each in new if cells(each.head) <= NAME_COLUMN), default=0)
    facts, is_whole = _facts(new, shared, column, room)
    titled = [_titled(each, column, own, room, look.width) for each, own in zip(new, facts, strict=True)]
    whole = is_whole and all(each.title in "".join(texts) for each, texts in zip(new, titled, strict=True))
    names = _aligned(titled, room)
    lines = [CreateLine(name, own, where) for name, (_, own), where in zip(names, titled, places, strict=True)]
    return CreateLines(_words(shared, template, is_each=is_each), lines, not whole)


def _facts(new: Sequence[_New], shared: Mapping[str, str], column: int, room: int) -> tuple[list[str], bool]:
    """Return what each line says beside its title, and whether that is all that is not shared."""
    facts = [[*each.remarks, *_differences(each, shared)] for each in new]
    counts = Counter(label for each in new for label in each.values if label not in shared)
    must = [label for label, count in counts.items() if label in (VISIBILITY, FORMER) or count == 1 < len(new) - 1]
    is_whole = all(each.brief == each.values for each in new)
    for label in sorted(counts, key=lambda label: (label not in must, _rank(label))):
        own = [[f"{label}: {each.brief[label]}"] if label in each.values else [] for each in new]
        more = [[*old, *added] for old, added in zip(facts, own, strict=True)]
        if label in must or all(_width(each, column, beside) <= room for each, beside in zip(new, more, strict=True)):
            facts = more
        else:
            is_whole = False
    return ["; ".join(each) for each in facts], is_whole


def _rank(label: str) -> int:
    return ORDER.index(label) if label in ORDER else len(ORDER)


def _titled(new: _New, column: int, facts: str, room: int, width: int) -> tuple[str, str]:
    """Return the name with its title, and the facts.

    The title is cut to leave room for facts and place, or else for the place, or for neither. With no room for a part
    that can be read, it stands among the facts.
    """
    name = new.name(column)
    enough = min(cells(new.title), LEAST_TITLE)
    for limit in (room - _beside(facts), room, width):
        if limit - cells(name) >= enough:
            return name + cut(new.title, limit - cells(name)), facts
    return new.head, "; ".join(filter(None, (new.title, facts)))


def _aligned(titled: Sequence[tuple[str, str]], room: int) -> list[str]:
    """Return the names padded to one column, in which their facts begin, if all then still fit."""
    column, most = (max(map(cells, each)) for each in zip(*titled, strict=True))
    if column + len(GAP) + most > room:
        return [name for name, _ in titled]
    return [_padded(name, column) if facts else name for name, facts in titled]


def _padded(text: str, column: int) -> str:
    return text + " " * (column - cells(text))


def _new(row: SectionRow, title: str, look: Look) -> _New:
    details = [(detail.label, lettered("".join(span.text for span in detail.spans), look)) for detail in row.details]
    values = {label: text for label, text in details if label}
    head = f"{INDENT}{row.symbol} {lettered(row.subject, look)}"
    return _New(head, _bare(values.pop(title, "")), values, tuple(text for label, text in details if not label))


def _bare(quoted: str) -> str:
    """Return a title without its quotes, unless it could then be taken for something else that a line says."""
    text = quoted[1:-1]
    is_plain = text == text.strip() and GAP not in text and not set(text) & set('\\":;')
    return text if is_plain else quoted


def _places(rows: Sequence[SectionRow]) -> tuple[str, list[str]]:
    """Return the place of the template that made all resources, if any, and for each its place or its row's."""
    sources = [row.members[0].source for row in rows]
    rows_of_one = [each.data for each in sources if each and each.data and each[:2] == (sources[0] or each)[:2]]
    if len(rows_of_one) < len(rows):
        return "", [place(each) for each in sources]
    return place(sources[0] and sources[0]._replace(data=None)), [
        file_name(f"{each.file}:{each.row}") for each in rows_of_one
    ]


def _shared(new: Sequence[_New]) -> tuple[dict[str, str], bool]:
    """Return the values that are said once for all lines, and whether no line differs from them."""
    shared, is_each = dict[str, str](), True
    for label in sorted(dict.fromkeys(label for each in new for label in each.values), key=_rank):
        text, count = Counter(each.values.get(label) for each in new).most_common(1)[0]
        others = len(new) - count
        is_often = others < count if label == VISIBILITY else others * OFTEN <= len(new)
        if text and is_often and cells(text) <= LONGEST and label != FORMER:
            shared[label] = text
            is_each &= not others
    return shared, is_each


def _differences(new: _New, shared: Mapping[str, str]) -> Iterator[str]:
    """Yield the values that differ from those that are said of all lines."""
    for label, text in shared.items():
        if label not in new.values:
            yield f"{label}: PUBLIC by default" if label == VISIBILITY else f"no {label}"
        elif new.values[label] != text:
            yield f"{label}: {new.brief[label]}"


def _width(new: _New, column: int, facts: Sequence[str]) -> int:
    """Return the columns of a line with its title, of which a long one may be cut."""
    return cells(new.name(column)) + min(cells(new.title), LONGEST) + _beside("; ".join(facts))


def _beside(facts: str) -> int:
    return cells(facts) + len(GAP) if facts else 0


def _words(shared: Mapping[str, str], template: str, *, is_each: bool) -> str:
    """Return the words for what all lines share: `with visibility: PRIVATE (manifests/matters.yaml:4)`."""
    facts = "; ".join(f"{label}: {text}" for label, text in shared.items())
    unless = "" if is_each else ", unless said otherwise"
    return " ".join(filter(None, (f"with {facts}{unless}" if facts else "", f"({template})" if template else "")))

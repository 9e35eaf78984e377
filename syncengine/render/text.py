"""Plan → text for people at a terminal; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from syncengine.plan.diff import Action
from syncengine.plan.model import Plan
from syncengine.render.diagnostics import diagnostic_lines, warnings_first
from syncengine.render.escape import LONGEST, cells, cut, file_name, visible, wrapped
from syncengine.render.sections import MOST, NOTE_SYMBOL, Fold, Section, SectionRow, is_abridged
from syncengine.render.style import PLAIN, Look, Tone, lettered, painted
from syncengine.render.view import (
    ABRIDGED,
    GateView,
    ReviewedComparison,
    first_sentence,
    view_of,
    ways_to_approve,
)
from syncengine.render.words import FEW, comma_list, place

INDENT, GAP = "  ", "  "

SYMBOL_TONES = {
    Action.CREATE.value: Tone.CREATE,
    Action.UPDATE.value: Tone.UPDATE,
    Action.DELETE.value: Tone.REMOVE,
    Action.RETIRE.value: Tone.REMOVE,
    Action.FORGET.value: Tone.REMOVE,
    NOTE_SYMBOL: Tone.NOTE,
}


def plan_text(plan: Plan, look: Look = PLAIN) -> str:
    """Return the plan as text: summary, removals, additions, updates, notes, the gate and diagnostics."""
    view = view_of(plan, Fold.NOTHING if look.verbose else Fold.LINES)
    sections = [_section(section, look) for section in view.sections]
    is_abridged = any(section.is_abridged for section in sections)
    waiting = list[Iterable[str]]()
    if view.waiting and look.verbose:
        waiting = [paragraph(f"{view.waiting.line}:", look, Tone.NOTE)]
        waiting += (_section(section, look).lines for section in view.waiting.sections)
    elif view.waiting:
        is_abridged = True
        waiting = [paragraph(f"{view.waiting.line}; --verbose lists them.", look, Tone.NOTE)]
    first, *more, last = view.head
    opening = [*paragraph(first, look, Tone.HEADING), *(line for each in more for line in paragraph(each, look))]
    opening += paragraph(f"{last} {ABRIDGED}" if is_abridged else last, look, Tone.QUIET)
    denials = [painted(lettered(view.denied, look), Tone.ERROR, look)] if view.denials else []
    denials += diagnostic_lines(view.denials, look)
    return join_blocks(
        (
            (line for each in view.foremost for line in paragraph(first_sentence(each), look, Tone.HEADING)),
            (line for each in view.doubts for line in paragraph(first_sentence(each), look)),
            opening,
            _since(view.since, look) if view.since else (),
            *(section.lines for section in sections),
            *waiting,
            denials,
            _gate(view.gate, look, is_undo=bool(plan.undo)) if view.gate else (),
            diagnostic_lines(warnings_first(view.diagnostics, look), look),
        )
    )


def join_blocks(blocks: Iterable[Iterable[str]]) -> str:
    """Join blocks of lines with an empty line between them; the result ends with a line end."""
    texts = ["\n".join(block) for block in blocks]
    return "\n\n".join(text for text in texts if text) + "\n"


def paragraph(text: str, look: Look, tone: Tone | None = None, indent: str = "") -> list[str]:
    """Return the text wrapped to the width, each line in the colour of the tone."""
    lines = wrapped(lettered(text, look), look.width - len(indent))
    return [indent + painted(line, tone, look) for line in lines]


def _since(since: ReviewedComparison, look: Look) -> Iterator[str]:
    yield from paragraph(since.heading, look)
    yield from paragraph(since.verdict, look, Tone.ERROR if since.excess else None)
    for line in since.excess:
        first, *more = paragraph(line, look, None, INDENT * 2)
        yield from (f"{INDENT}- {first.lstrip()}", *more)


# --- sections and rows ------------------------------------------------------------------------------------------------


class _SectionText(NamedTuple):
    lines: list[str]
    is_abridged: bool


class _Line(NamedTuple):
    """One row of a section, in letters that the terminal has.

    `name` includes indentation and symbol, and `beside` are the details on the same line. Where these have no room,
    `details` stand below; `beyond` stands below in any case.
    """

    name: str
    beside: str
    details: tuple[str, ...]
    beyond: tuple[str, ...]
    place: str
    row: SectionRow


def _section(section: Section, look: Look) -> _SectionText:
    """Return a section with its places in one column and, in another one, the details of single resources."""
    of_lines = [row for row in section.rows if row.is_line]
    created = create_lines(of_lines, look) if of_lines else CreateLines("", [], is_abridged=False)
    created_lines = iter(created.lines)
    lines = [next(created_lines) if row.is_line else _line(row, look) for row in section.rows]
    room = look.width - max((cells(each.place) for each in lines if cells(each.place) <= look.width // 2), default=0)
    room -= len(GAP)
    single = [each for each in lines if not (each.row.label or each.row.is_line)]
    names = [cells(each.name) for each in single if cells(each.name + each.beside) <= room]
    name_column = max((width for width in names if width <= NAME_COLUMN), default=0)
    heads = []
    for each in lines:
        whole = each.name + each.beside
        aligned = _padded(each.name, name_column) + each.beside
        if each.details and not (each.row.label or each.row.is_line) and cells(aligned) <= room:
            whole = aligned
        heads.append(whole if cells(whole) <= room else each.name)
    column = max((cells(head) for head in heads if cells(head) <= room), default=0) + len(GAP)

    texts = list(_heading(section, created.shared, look, is_all=len(of_lines) == len(lines)))
    for each, head in zip(lines, heads, strict=True):
        indent = INDENT * (each.row.depth + 3)
        margin, _, rest = head.partition(each.row.symbol)
        text = margin + painted(each.row.symbol, SYMBOL_TONES[each.row.symbol], look) + rest
        blank = " " * (column - cells(head))
        # The place stands in its column, or else below the row.
        fits = len(blank) >= len(GAP) and column + cells(each.place) <= look.width
        place = painted(each.place, Tone.QUIET, look) if each.place else ""
        texts.append(text + blank + place if place and fits else text)
        for more in (*(each.details if head == each.name else ()), *each.beyond):
            texts += paragraph(more, look, None, indent)
        if place and not fits:
            texts.append(indent + place)
    is_any_unnamed = any(len(row.members) > _names_shown(row) + 1 for row in section.rows if row.label)
    return _SectionText(texts, created.is_abridged or is_any_unnamed or is_abridged([section]))


def _heading(section: Section, shared: str, look: Look, *, is_all: bool) -> Iterator[str]:
    """Yield the heading and the sentences of a section; what its lines share stands beside the heading if it fits."""
    title, shared = lettered(section.title, look), lettered(shared, look)
    is_beside = is_all and shared and cells(f"{title} {shared}") <= look.width
    yield painted(title, Tone.HEADING, look) + (painted(f" {shared}", Tone.QUIET, look) if is_beside else "")
    for sentence in section.says:
        yield from paragraph(sentence, look, Tone.QUIET, INDENT)
    if shared and not is_beside:
        yield from paragraph(shared if is_all else f"Listed one by one, {shared}", look, Tone.QUIET, INDENT)


def _line(row: SectionRow, look: Look) -> _Line:
    name = f"{INDENT * (row.depth + 1)}{row.symbol} {lettered(row.subject, look)}"
    details = tuple(lettered(str(detail), look) for detail in row.details)
    beside = (" " if row.label else GAP) + "; ".join(details) if details else ""
    beyond = [row.example] if row.example else []
    if row.label:
        most = _names_shown(row)
        beyond.append(comma_list([member.name for member in row.members[: most + 1]], most, count=len(row.members)))
    return _Line(name, beside, details, tuple(lettered(each, look) for each in beyond), lettered(row.place, look), row)


def _names_shown(row: SectionRow) -> int:
    """Return how many of its resources a folded row names; `comma_list` names one more rather than count it."""
    return MOST if row.depth else FEW  # what goes along with something else has not been named by anybody


# --- new resources, a line for each -----------------------------------------------------------------------------------
#
# A line has the name, the label or description as a title, what must be said, and as many of the other values as all
# lines have room for. What must be said is what the shared values do not tell: another visibility, a remark, a former
# name, and a field that no other line has.

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


class CreateLines(NamedTuple):
    """The lines of a section, the words for what they share, and whether anything is left out."""

    shared: str
    lines: list[_Line]
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
    new = [_new_of(row, title, look) for row in rows]
    template, places = _places(rows)
    shared, is_each = _shared(new)
    room = look.width - max((cells(each) + len(GAP) for each in places if cells(each) <= look.width // 2), default=0)
    column = max((cells(each.head) for each in new if cells(each.head) <= NAME_COLUMN), default=0)
    facts, is_whole = _facts(new, shared, column, room)
    titled = [_titled(each, column, own, room, look.width) for each, own in zip(new, facts, strict=True)]
    is_whole &= all(each.title in "".join(texts) for each, texts in zip(new, titled, strict=True))
    # Facts begin in one column, if all then still fit.
    facts_column, most = (max(map(cells, each)) for each in zip(*titled, strict=True))
    is_aligned = facts_column + len(GAP) + most <= room
    lines = []
    for row, (name, own), where in zip(rows, titled, places, strict=True):
        padded = lettered(_padded(name, facts_column) if own and is_aligned else name, look)
        beside = lettered(own, look)
        lines.append(
            _Line(padded, GAP + beside if own else "", (beside,) if own else (), (), lettered(where, look), row)
        )
    unless = "" if is_each else ", unless said otherwise"
    words = f"with {'; '.join(f'{label}: {text}' for label, text in shared.items())}{unless}" if shared else ""
    return CreateLines(" ".join(filter(None, (words, f"({template})" if template else ""))), lines, not is_whole)


def _facts(new: Sequence[_New], shared: Mapping[str, str], column: int, room: int) -> tuple[list[str], bool]:
    """Return what each line says beside its title, and whether that is all that is not shared."""
    facts = [list(each.remarks) for each in new]
    for each, own in zip(new, facts, strict=True):
        for label, text in shared.items():
            if label not in each.values:
                own.append(f"{label}: PUBLIC by default" if label == VISIBILITY else f"no {label}")
            elif each.values[label] != text:
                own.append(f"{label}: {each.brief[label]}")
    counts = Counter(label for each in new for label in each.values if label not in shared)
    must = [label for label, count in counts.items() if label in (VISIBILITY, FORMER) or count == 1 < len(new) - 1]
    is_whole = all(each.brief == each.values for each in new)

    def width(new: _New, facts: Sequence[str]) -> int:
        """Return the columns of a line with its title, of which a long one may be cut."""
        return cells(new.name(column)) + min(cells(new.title), LONGEST) + _beside_width("; ".join(facts))

    for label in sorted(counts, key=lambda label: (label not in must, _rank(label))):
        own_facts = [[f"{label}: {each.brief[label]}"] if label in each.values else [] for each in new]
        more = [[*old, *added] for old, added in zip(facts, own_facts, strict=True)]
        if label in must or all(width(each, beside) <= room for each, beside in zip(new, more, strict=True)):
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
    for limit in (room - _beside_width(facts), room, width):
        if limit - cells(name) >= enough:
            return name + cut(new.title, limit - cells(name)), facts
    return new.head, "; ".join(filter(None, (new.title, facts)))


def _padded(text: str, column: int) -> str:
    return text + " " * (column - cells(text))


def _beside_width(facts: str) -> int:
    return cells(facts) + len(GAP) if facts else 0


def _new_of(row: SectionRow, title: str, look: Look) -> _New:
    details = [(detail.label, lettered("".join(span.text for span in detail.spans), look)) for detail in row.details]
    values = {label: text for label, text in details if label}
    head = f"{INDENT}{row.symbol} {lettered(row.subject, look)}"
    quoted = values.pop(title, "")
    text = quoted[1:-1]
    # A title has no quotes, unless it could then be taken for something else that a line says.
    is_plain = text == text.strip() and GAP not in text and not set(text) & set('\\":;')
    return _New(head, text if is_plain else quoted, values, tuple(text for label, text in details if not label))


def _places(rows: Sequence[SectionRow]) -> tuple[str, list[str]]:
    """Return the place of the template that made all resources, if any, and for each its place or its row's."""
    sources = [row.members[0].source for row in rows]
    rows_of_one = [each.data for each in sources if each and each.data and each[:2] == (sources[0] or each)[:2]]
    if len(rows_of_one) < len(rows):
        return "", [place(each) for each in sources]
    template = place(sources[0] and sources[0]._replace(data=None))
    return template, [file_name(f"{each.file}:{each.row}") for each in rows_of_one]


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


# --- gate -------------------------------------------------------------------------------------------------------------


def _gate(gate: GateView, look: Look, *, is_undo: bool) -> Iterator[str]:
    yield painted(lettered(gate.heading, look), Tone.ERROR if gate.is_closed else Tone.NOTE, look)
    if gate.whose:
        yield from paragraph(gate.whose, look, None, INDENT)
    for line in gate.units:
        first, *rest = paragraph(str(line), look, None if line.is_open else Tone.QUIET, INDENT)
        yield from (first, *(f"{INDENT}{each}" for each in rest))
    yield from paragraph(gate.more, look, None, INDENT) if gate.more else ()
    for reason in gate.reasons:
        first, *more = paragraph(visible(reason), look, None, INDENT * 2)
        yield from (f"{INDENT}- {first.lstrip()}", *more)
    for way in ways_to_approve(gate, look, is_undo=is_undo):  # unwrapped, to be copied
        yield f"{INDENT}{way.says}"
        yield from (f"{INDENT * 2}{line}" for line in way.lines)
        if way.then:
            yield f"{INDENT}{way.then}"

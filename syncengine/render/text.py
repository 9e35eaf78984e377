"""Plan → text for people at a terminal; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from syncengine.plan.diff import Action
from syncengine.render.diagnostics import diagnostic_lines, warnings_first
from syncengine.render.escape import LONGEST, cells, cut, file_name, visible, wrapped
from syncengine.render.formats import Place, PlanFormat
from syncengine.render.sections import MOST, NOTE_SYMBOL, Fold, Section, is_abridged
from syncengine.render.style import PLAIN, Look, Tone, lettered, painted
from syncengine.render.values import Details, ValuePart
from syncengine.render.view import ABRIDGED, GateView, WayToApprove, first_sentence, view_of
from syncengine.render.words import FEW, comma_list, place

INDENT, GAP = "  ", "  "
ELLIPSIS = "..."  # as a terminal without Unicode shows it
NAME_COLUMN = 28
"""The widest name, with its symbol, beside which the details of a section begin in one column."""

SYMBOL_TONES = {
    Action.CREATE.value: Tone.CREATE,
    Action.UPDATE.value: Tone.UPDATE,
    Action.DELETE.value: Tone.REMOVE,
    Action.RETIRE.value: Tone.REMOVE,
    Action.FORGET.value: Tone.REMOVE,
    NOTE_SYMBOL: Tone.NOTE,
}


def plan_text(plan: PlanFormat, look: Look = PLAIN) -> str:
    """Return the plan as text: summary, removals, additions, updates, notes, the gate and diagnostics."""
    view = view_of(plan, look, Fold.NOTHING if look.verbose else Fold.LINES)
    shown = [(section, *_rows(section, look)) for section in view.sections]
    is_short = any(is_cut or is_abridged([section]) for section, _, is_cut in shown)
    waiting = list[Iterable[str]]()
    if view.waiting and look.verbose:
        waiting = [paragraph(f"{view.waiting.line}:", look, Tone.NOTE)]
        waiting += ((*_heading(each, look), *_rows(each, look)[0]) for each in view.waiting.sections)
    elif view.waiting:
        is_short = True
        waiting = [paragraph(f"{view.waiting.line}; --verbose lists them.", look, Tone.NOTE)]
    first, *more, last = view.head
    opening = [*paragraph(first, look, Tone.HEADING), *(line for each in more for line in paragraph(each, look))]
    opening += paragraph(f"{last} {ABRIDGED}" if is_short else last, look, Tone.QUIET)
    denials = [painted(lettered(view.denied, look), Tone.ERROR, look)] if view.denials else []
    comparison = list[str]()
    if since := view.since:
        comparison = [*paragraph(since.heading, look)]
        comparison += paragraph(since.verdict, look, Tone.ERROR if since.excess else None)
        comparison += (line for each in since.excess for line in item(each, look))
    return join_blocks(
        (
            (line for each in view.foremost for line in paragraph(first_sentence(each), look, Tone.HEADING)),
            (line for each in view.doubts for line in paragraph(first_sentence(each), look)),
            opening,
            comparison,
            *((*_heading(section, look), *lines) for section, lines, _ in shown),
            *waiting,
            (*denials, *diagnostic_lines(view.denials, look)),
            _gate(view.gate, view.ways, look) if view.gate else (),
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


def item(text: str, look: Look) -> Iterator[str]:
    """Yield the lines of an item of a list."""
    first, *more = paragraph(text, look, None, INDENT * 2)
    yield from (f"{INDENT}- {first.lstrip()}", *more)


def _heading(section: Section, look: Look) -> Iterator[str]:
    shared, template = _shared(section)
    words = f"{section.title} with {'; '.join(map(str, shared))}" if shared else section.title
    yield from paragraph(f"{words} ({template})" if template else words, look, Tone.HEADING)
    for sentence in section.says:
        yield from paragraph(sentence, look, Tone.QUIET, INDENT)


def _shared(section: Section) -> tuple[Details, str]:
    """Return the values that all resources of a section in lines have, and the place of the template that makes them.

    The heading says them once.
    """
    line = next((row for row in section.rows if row.is_line), None)
    if line is None:
        return (), ""
    details = (each for each in line.details if each.label and cells(str(each)) <= LONGEST)
    shared = tuple(each for each in details if all(each in (row.common or row.details) for row in section.rows))
    sources = [member.source for row in section.rows for member in row.members]
    templates = {Place(each.file, each.line) if each and each.data else None for each in sources}
    return shared, place(templates.pop()) if len(templates) == 1 else ""


def _rows(section: Section, look: Look) -> tuple[list[str], bool]:
    """Return the lines of a section's rows, and whether anything is cut or not named.

    The places stand in one column, and in another one the details of single resources. What has no room in the line of
    its row stands below it, but a row that is a line is cut.
    """
    shared, template = _shared(section)
    rows = [(row, f"{INDENT * (row.depth + 1)}{row.symbol} {lettered(row.subject, look)}") for row in section.rows]
    own = [row.details if row.label else [each for each in row.details if each not in shared] for row in section.rows]
    places = [row.place for row in section.rows]
    if template:  # a line names its row of data alone
        data = [None if row.label or not (at := row.members[0].source) else at.data for row in section.rows]
        places = [file_name(f"{each.file}:{each.row}") if each else "" for each in data]
    places = [lettered(each, look) for each in places]
    room = look.width - len(GAP) - max((cells(each) for each in places if cells(each) <= look.width // 2), default=0)
    widths = [cells(head) for (row, head), details in zip(rows, own, strict=True) if details and not row.label]
    name_column, is_cut, heads = max((each for each in widths if each <= NAME_COLUMN), default=0), False, list[str]()
    for (row, head), details in zip(rows, own, strict=True):
        said = lettered("; ".join(map(str, details)), look)
        beside = head + (" " if row.label else " " * max(0, name_column - cells(head)) + GAP) + said
        beside = beside if cells(beside) <= room else head + (" " if row.label else GAP) + said
        # A remark and former names, which come first, are never cut.
        is_cuttable = row.is_line and not (details and details[0].label in ("", ValuePart.FORMER.value))
        if is_cuttable and cells(beside) > room > cells(head) + NAME_COLUMN:
            beside, is_cut = lettered(cut(beside, room - len(ELLIPSIS)), look), True
        heads.append(beside if details and cells(beside) <= room else head)
    column = max((cells(head) for head in heads if cells(head) <= room), default=0) + len(GAP)
    lines = list[str]()
    for (row, name), details, head, where in zip(rows, own, heads, places, strict=True):
        margin, _, rest = head.partition(row.symbol)
        text = margin + painted(row.symbol, SYMBOL_TONES[row.symbol], look) + rest
        indent, quiet, blank = INDENT * (row.depth + 3), painted(where, Tone.QUIET, look), column - cells(head)
        fits = blank >= len(GAP) and column + cells(where) <= look.width
        lines.append(text + " " * blank + quiet if where and fits else text)
        below = [] if head != name else list(map(str, details))
        below += [row.example] if row.example else []
        if row.label:
            most = MOST if row.depth else FEW  # what goes along with something else has not been named by anybody
            below.append(comma_list([member.name for member in row.members[: most + 1]], most, count=len(row.members)))
            is_cut |= len(row.members) > most + 1  # `comma_list` names one more rather than count it
        for each in below:
            lines += paragraph(each, look, None, indent)
        lines += [indent + quiet] if where and not fits else []
    return lines, is_cut


def _gate(gate: GateView, ways: Iterable[WayToApprove], look: Look) -> Iterator[str]:
    yield painted(lettered(gate.heading, look), Tone.ERROR if gate.is_closed else Tone.NOTE, look)
    if gate.whose:
        yield from paragraph(gate.whose, look, None, INDENT)
    for line in gate.units:
        first, *rest = paragraph(str(line), look, None if line.is_open else Tone.QUIET, INDENT)
        yield from (first, *(f"{INDENT}{each}" for each in rest))
    yield from paragraph(gate.more, look, None, INDENT) if gate.more else ()
    for reason in gate.reasons:
        yield from item(visible(reason), look)
    for way in ways:  # unwrapped, to be copied
        yield f"{INDENT}{way.says}"
        yield from (f"{INDENT * 2}{line}" for line in way.lines)
        if way.then:
            yield f"{INDENT}{way.then}"

"""Signs in a table that people made: closed matters, a total below the rows, a header further down or none. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice, pairwise
from typing import NamedTuple

from syncengine.manifest.sources.files import DELIMITERS, csv_records
from syncengine.manifest.sources.records import SourceTrouble
from syncengine.tools.init.columns import LISTED, Rows, joined, names_matters, words_of

_STATUS = frozenset("status matterstatus casestatus filestatus projectstatus statut".split())  # noqa: SIM905 - words
"""Headers whose values are statuses, whatever they are."""
_IS_OPEN = frozenset(("open", "isopen", "active", "isactive", "live", "current", "offen", "aktiv", "ouvert", "actif"))
_CLOSING = frozenset(
    "closed close closing closure inactive archived completed ended geschlossen abgeschlossen erledigt beendet "  # noqa: SIM905 - words
    "abgelegt ablage clos cloture ferme archive cerrado cierre chiuso gesloten afgesloten".split()
)
"""Words of headers of columns that say that, or when, a matter was closed."""
_OPEN = frozenset(
    "open opened reopened active live current ongoing running inprogress offen aktiv laufend laufendes inbearbeitung "  # noqa: SIM905 - words
    "ouvert ouverte actif active encours abierto abierta activo activa aperto aperta attivo lopend actief".split()
)
_SHUT = frozenset(
    "closed inactive archived completed complete done finished settled abandoned lapsed withdrawn geschlossen "  # noqa: SIM905 - words
    "abgeschlossen erledigt beendet abgelegt archiviert inaktiv clos close ferme termine archive inactif cerrado "
    "cerrada inactivo chiuso chiusa gesloten afgesloten".split()
)
_OTHER = frozenset("pending onhold hold suspended dormant new draft intake ruhend wartend neu".split())  # noqa: SIM905 - words
_YES = frozenset("yes y true 1 ja j oui si x".split())  # noqa: SIM905 - words
_NO = frozenset("no n false 0 nein non nee".split()) | {""}  # noqa: SIM905 - words
_TOTALS = frozenset(("total", "totals", "subtotal", "grand", "sum", "summe", "gesamt", "gesamtsumme", "insgesamt"))
SOME_DAY = "a date"
ABOVE = 20
"""The number of first records among which the header is looked for."""
_LETTERS, _DIGITS = re.compile(r"[^\W\d_]+"), re.compile(r"\d+")


class StatusColumn(NamedTuple):
    """A column that may say which matters are closed: its values with their rows, and those that are `live`."""

    column: str
    counts: dict[str, int]
    live: tuple[str, ...]


def status_of(columns: Sequence[str], rows: Rows) -> StatusColumn | None:
    """Return the likeliest column with the status of each row, or `None`.

    Its header says so, or all its values do. Of the days on which matters were closed, `""` is what is live, and all
    days are counted as `SOME_DAY`.
    """
    found = [status for column in columns if (status := _status(column, Counter(r[column].strip() for _, r in rows)))]
    by_name = [status for status in found if joined(status.column) in _STATUS]
    return next(iter([*by_name, *found]), None)


def _status(column: str, counts: Counter[str]) -> StatusColumn | None:
    plain = {value: joined(value) for value in counts}
    is_closing = not _CLOSING.isdisjoint(words_of(column))
    if (is_closing or joined(column) in _IS_OPEN) and set(plain.values()) <= _YES | _NO:
        live = _NO if is_closing else _YES
        return _with(column, counts, [value for value in counts if plain[value] in live])
    if is_closing and counts[""] and not set(plain.values()) & (_OPEN | _SHUT):
        return StatusColumn(column, {"": counts[""], SOME_DAY: counts.total() - counts[""]}, ("",))
    statuses = {value for value, word in plain.items() if word in _OPEN | _SHUT | _OTHER}
    if len(counts) > LISTED or not (joined(column) in _STATUS or (statuses and statuses >= set(counts) - {""})):
        return None
    shut = [value for value in counts if plain[value] in _SHUT]
    opened = [value for value in counts if plain[value] in _OPEN]
    return _with(column, counts, opened or [value for value in counts if value and value not in shut])


def _with(column: str, counts: Counter[str], live: Sequence[str]) -> StatusColumn | None:
    return StatusColumn(column, dict(counts), tuple(live)) if live else None


def total_of(rows: Rows) -> tuple[int, str] | None:
    """Return the line of a last row that holds a total, and the cell that says so, or `None`."""
    line, row = rows[-1]
    return next(
        ((line, cell.strip()) for cell in row.values() if words_of(cell)[:1] and words_of(cell)[0] in _TOTALS), None
    )


def is_row(column: str, rows: Rows) -> bool:
    """Return whether the name of a column has digits, and looks like every value below it: the file has no header."""
    shape = _shape(column)
    return "0" in shape and all(_shape(row[column]) == shape for _, row in rows)


def _shape(text: str) -> str:
    return _DIGITS.sub("0", _LETTERS.sub("a", text.strip()))


def header_below(text: str) -> int | None:
    """Return the line of a header below the first line that has text, or `None` if that one may be the header."""
    return next(_headers_below(text), None)


def _headers_below(text: str) -> Iterator[int]:
    for delimiter in DELIMITERS:
        records: list[tuple[int, list[str]]] = []
        with suppress(SourceTrouble):
            records += ((n, [*filter(None, map(str.strip, r))]) for n, r in islice(csv_records(text, delimiter), ABOVE))
        if not records or any(map(names_matters, first := records[0][1])):
            continue
        for (line, cells), (_, below) in pairwise(records[1:]):
            wide = len(cells) > 2 * len(first) and len(cells) == max(len(each) for _, each in records)
            if below and len(cells) > 1 and (wide or any(map(names_matters, cells))):
                yield line
                break

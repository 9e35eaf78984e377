"""The header and the values of a table's columns → the identity, and columns that hold persons or addresses. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice, pairwise, product
from typing import NamedTuple

from syncengine.document.diagnostics import suggestion
from syncengine.document.nodes import quoted
from syncengine.document.text import folded
from syncengine.manifest.lints import broad
from syncengine.manifest.sources.files import DELIMITERS, csv_records
from syncengine.manifest.sources.records import SourceTrouble

MATTERS = tuple(
    "matter case file docket project issue ticket engagement mandate job dossier affaire mandat mandats akte "  # noqa: SIM905 - words
    "akten vorgang vorgangs geschafts fall projekt sache verfahren zaak expediente asunto pratica sak saks sag sags "
    "arende".split()
)
_NUMBERS = frozenset("number numbers no num nr nummer n numero zeichen code key ref reference".split())  # noqa: SIM905 - words
_FILLERS = frozenset("the of our a de du des der la le l di da del van unser unsere internal client mandant".split())  # noqa: SIM905 - words
IDENTITIES: Sequence[frozenset[str]] = (
    frozenset(a + b for pair in product(MATTERS, _NUMBERS) for a, b in (pair, pair[::-1]))
    | {"az", "unserzeichen", "ourref", "ourreference"},
    _NUMBERS - {"ref", "reference"} | {"kennung", "schlussel"},
    frozenset({*MATTERS, "ref", "reference"} | {f"{matter}id" for matter in MATTERS}),
    frozenset({"id", "externalid", "uuid", "guid"}),
    frozenset({"name"}),
)
"""Headers of columns that name a matter, likeliest first, without blanks, signs, accents and words between."""
_PERSONS = frozenset(
    "user users login owner owners reporter creator author manager handler person persons people employee staff "  # noqa: SIM905 - words
    "atty solicitor barrister counsel paralegal partner partners associate associates secretary assistant resp lead "
    "supervisor agent clerk by worker member members participants watcher watchers approver reviewer requester judge "
    "requestor originator inventor inventors surname forename firstname lastname fullname displayname ssn passport "
    "salutation anrede besitzer ersteller erfasser autor berater betreuer referent dezernent kollege ra richter "
    "erfinder familienname gestionnaire collaborateur prenom encargado responsabile referente tkpr tk primary "
    "letrado procurador notary notaire notar vertreter "
    "opponent opponents opposing adverse party parties plaintiff defendant claimant respondent witness debtor spouse "
    "gegner gegenpartei gegnerin gegenseite wederpartij klager beklagter beklagte zeuge schuldner "
    "adversaire contraparte "
    "dob age gender sex geb nationality nino nhs nif nie dni bsn ahv nir ssnr steuernummer "
    "tel fax cell gsm mobile mobil handynr street zip plz city town ort stadt iban addr".split()
)
"""Words of headers of columns with persons, or with ways to reach them."""
_PARTS = re.compile(
    "verantwort|verantwoord|zustandig|zustaendig|responsab|responsav|responsib|bearbeiter|behandelaar|anwalt|anwaelt|"
    "attorney|lawyer|avocat|abogad|advoca|advogad|avvocat|mitarbeiter|medewerker|benutzer|gebruiker|utilisateur|"
    "utilizador|usuario|utente|username|assign|contact|kontakt|ansprech|vorname|nachname|geburt|birth|kurzel|kuerzel|"
    "kurzzeichen|initial|timekeeper|earner|leiter|sekret|mail|telefo|telephon|phone|adress|address|anschrift|strass|"
    "straat|courriel|correo|indirizzo|direccion|postleit|postcod|postal|handynum|rufnum|"
    "geboor|geboren|nacimiento|nascimento|naissance|nascita|socialsec|sozialvers|ninumber|nationalins"
)
"""Parts of such words, also in words that are written together, as in German."""
_MAIL = re.compile(r"[^\s@]@[^\s@]+\.[^\W\d_]{2}")
_PHONE = re.compile(
    r"\+\d[\d ()/.-]{6,}"
    r"|(?!\d{1,2}[ /]\d{1,2}[ /]\d{2,4}$)\(?0\d{1,5}\)?[ /]\(?\d[\d ()/-]{4,}"
    r"|\(\d{3}\) ?\d{3}-\d{4}|\d{3}[-. ]\d{3}[-. ]\d{4}"
)
"""A number with its country's code, or in the form of a country; dates are none."""
_STREET = re.compile(
    r"\d+\w?,? [\w .'-]+ (st|street|ave|avenue|rd|road|lane|ln|blvd|drive|court|square)\b.*"
    r"|[\w .'-]+(str\.|straße|strasse|gasse|platz|allee|weg) ?\d+.*"
    r"|\d+,? (rue|avenue|bd|boulevard|place|chemin) .*|(calle|via|piazza|rua|avenida) [\w .']+,? \d+.*",
    re.IGNORECASE,
)
"""A house number and the usual words for streets."""
LISTED = 10
"""The largest number of lines and columns that a message lists."""

Rows = Sequence[tuple[int, dict[str, str]]]
"""The rows of a table, each with its line."""


class NoIdentity(ValueError):
    """No column is the identity, with the reason, and the columns of which `--key` may name one.

    `is_repeated` is whether the column that should be it has a value twice.
    """

    def __init__(self, reason: str, candidates: Sequence[str] | None = None, *, is_repeated: bool = False) -> None:
        super().__init__(reason)
        self.candidates, self.is_repeated = candidates, is_repeated


def words_of(header: str) -> list[str]:
    """Return the words of a header in lower case, without accents and signs but `#`; `userName` has two."""
    named = unicodedata.normalize("NFKD", header.replace("#", " number "))
    plain = "".join(c for c in named if not unicodedata.combining(c))
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[\W_]+", " ", plain).casefold().split()


def joined(header: str) -> str:
    return "".join(words_of(header))


def names_persons(header: str) -> bool:
    """Return whether a header says that its column holds persons, initials, addresses or telephone numbers."""
    return not _PERSONS.isdisjoint(words_of(header)) or _PARTS.search(joined(header)) is not None


def holds_addresses(values: Iterable[str], *, whole: bool = False) -> bool:
    """Return whether a value contains an e-mail address, or is a telephone number or the address of a house.

    If `whole`, a text with an e-mail address in it is none, nor is a house: both may be what a matter is about.
    """
    return any(
        ("@" in value and _MAIL.search(value) and not (whole and " " in value.strip()))
        or _PHONE.fullmatch(value.strip())
        or (not whole and _STREET.fullmatch(value.strip()))
        for value in values
    )


def identity_of(columns: Sequence[str], rows: Rows, key: str | None) -> str:
    """Return the column that names each row: `key`, else the likeliest by its header.

    Raise `NoIdentity` unless its values are all there and all different.
    """
    if key is not None:
        column = next((c for c in columns if c == key), None) or _alike(key, columns)
        if trouble := _flaw(column, rows, str):
            reason = f"column {quoted(column)} cannot be the identity: {trouble}"
            raise NoIdentity(reason, _candidates(columns, rows), is_repeated=_is_repeated(column, rows))
        return column
    named = [column for column in columns if not names_persons(column)]
    ranks = IDENTITIES if named == list(columns) else IDENTITIES[:-1]  # beside such columns, a name may be a person's
    likely = next((found for rank in ranks if (found := [c for c in named if _main(c) in rank])), [])
    flaws = {column: _flaw(column, rows) for column in likely}
    fit = [column for column, flaw in flaws.items() if not flaw]
    if len(fit) == 1:
        short = broad(row[fit[0]].strip() for _, row in rows)
        better = [
            column
            for column in _candidates(columns, rows)
            if short and not _NUMBERS.isdisjoint(words_of(column)) and not broad(row[column].strip() for _, row in rows)
        ]
        if not better:
            return fit[0]
        reason = (
            f"column {quoted(fit[0])} may be the identity, but {quoted(short[0])} matches unrelated time as a keyword"
        )
        raise NoIdentity(reason, [*better, fit[0]])
    if fit:
        raise NoIdentity("the headers of several columns say that they are the identity", fit)
    reasons = [f"column {quoted(column)} cannot be the identity: {flaw}" for column, flaw in flaws.items()]
    reason = "; ".join(reasons) or "no header says which column is the identity"
    is_repeated = any(_is_repeated(column, rows) for column in likely)
    raise NoIdentity(reason, _candidates(columns, rows), is_repeated=is_repeated)


def names_matters(header: str) -> bool:
    """Return whether a header says that its column is the identity, as `Matter No.` and `Aktenzeichen` do."""
    return not names_persons(header) and any(_main(header) in rank for rank in IDENTITIES[:-1])


def _main(header: str) -> str:
    words = words_of(header)
    kept = [word for word in words if word not in _FILLERS]
    return "".join(kept if len(kept) > 1 or kept == words else words)


def _alike(key: str, columns: Sequence[str]) -> str:
    """Return the only column whose header is `key` but for case and signs. Raise `NoIdentity` if there is none."""
    alike = [column for column in columns if joined(column) == joined(key)]
    if len(alike) == 1:
        return alike[0]
    hint = suggestion(key, columns) or f"; there are {listed(map(quoted, columns))}"
    raise NoIdentity(f"there is no column {quoted(key)}{hint}")


def _flaw(column: str, rows: Rows, same: Callable[[str], str] = folded) -> str | None:
    """Return why the values of a column cannot be identities, or `None`. Those for which `same` agrees are equal."""
    values = [(line, row[column].strip()) for line, row in rows]
    if blank := [str(line) for line, value in values if not value]:
        return f"it has no value in line{'s' * (len(blank) > 1)} {listed(blank)}"
    equal: dict[str, list[tuple[int, str]]] = {}
    for line, value in values:
        equal.setdefault(same(value), []).append((line, value))
    repeated = [
        f"{' and '.join(quoted(value) for value in dict.fromkeys(value for _, value in found))} in lines "
        f"{listed(str(line) for line, _ in found)}"
        for found in equal.values()
        if len(found) > 1
    ]
    return f"it has {listed(repeated)}" if repeated else None


def _is_repeated(column: str, rows: Rows) -> bool:
    """Return whether all values of a column are there, and one of them twice."""
    values = [row[column].strip() for _, row in rows]
    return all(values) and len(set(values)) < len(values)


def _candidates(columns: Sequence[str], rows: Rows) -> list[str]:
    return [
        column
        for column in columns
        if not names_persons(column)
        and not holds_addresses((row[column] for _, row in rows), whole=True)
        and not _flaw(column, rows)
    ]


def listed(items: Iterable[str]) -> str:
    """Return the first items, and how many more there are."""
    shown = list(items)
    more = f" and {len(shown) - LISTED} more" if len(shown) > LISTED else ""
    return ", ".join(shown[:LISTED]) + more


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

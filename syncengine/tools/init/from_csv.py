"""Build a first `generate` block from the header and the values of a CSV file. Reads the file.

Guessed are the identity, the fields of tags, a column that says which matters are closed, and columns that hold persons
or addresses, which are left out.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from syncengine.document.diagnostics import suggestion
from syncengine.document.nodes import quoted
from syncengine.document.text import folded, with_line_feeds
from syncengine.document.validation import names_of
from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.manifest.schema import Tag
from syncengine.manifest.sources.files import Form, csv_rows, encoding_of, likely_delimiter, text_of
from syncengine.manifest.sources.records import SourceTrouble
from syncengine.project.files import content_of
from syncengine.templating.values import is_template

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
DESCRIPTIONS = (
    *("description", "title", "subject", "summary"),
    *(matter + word for word in ("description", "desc", "title", "name") for matter in MATTERS),
    *("matter", "case", "label", "text", "re", "name", "beschreibung", "bezeichnung", "titel", "betreff", "kurzrubrum"),
    *("rubrum", "kurzbezeichnung", "langbezeichnung", "objet", "intitule", "libelle", "asunto", "oggetto"),
    *("descripcion", "descrizione", "descricao", "omschrijving"),
)
EXTERNAL_IDS = ("externalid", "id", "uuid", "guid", *(f"{matter}id" for matter in MATTERS))
URLS = ("url", "link", "href")
KEYWORDS = (
    *("keywords", "keyword", "schlagworter", "schlagwoerter", "schlagworte", "schlagwort"),
    *("stichworter", "stichwoerter", "stichworte", "stichwort"),
)
"""Common names of columns for each field, likeliest first, without blanks, punctuation and diacritics."""
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
MANIFEST = "manifests/matters.yaml"
VISIBILITY = (
    "PRIVATE: only authorised members of the team see a tag. PUBLIC: all do; to open it later needs an approval."
)
LISTED = 10  # lines and columns in a message, which stays readable for a file with thousands
SOME_DAY = "a date"
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_METHODS = frozenset({"items", "keys", "values", "get", "row"})
_ESCAPES = {'"': '\\"', "\\": "\\\\"}
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off"})

Rows = Sequence[tuple[int, dict[str, str]]]
"""The rows of a table, each with its line."""


class StatusColumn(NamedTuple):
    """A column that may say which matters are closed: its values with their rows, and those that are `live`."""

    column: str
    counts: dict[str, int]
    live: tuple[str, ...]


class Generated(NamedTuple):
    """The files that generate tags, and what a person has to look at.

    `left_out` are the columns that may hold persons or addresses.
    """

    files: dict[str, str | bytes] = {}  # noqa: RUF012 - never changed
    left_out: tuple[str, ...] = ()
    status: StatusColumn | None = None


class CsvTable(NamedTuple):
    """The contents of a CSV file. `rows` pairs each row with the line in which it starts."""

    delimiter: str
    encoding: str
    columns: tuple[str, ...]
    rows: Rows


class NoIdentity(ValueError):
    """No column is the identity, with the reason, and the columns of which `--key` may name one."""

    def __init__(self, reason: str, candidates: Sequence[str] | None = None) -> None:
        super().__init__(reason)
        self.candidates = candidates


def generated(file: Path, name: str, folder: Path, key: str | None, command: Callable[[str], str]) -> Generated:
    """Return the files that generate tags from `file`: a manifest, and a copy of a file that is outside the project.

    The copy is identical, so that the next export can replace it. `name` is the file's name in messages, and `key` the
    column of the identity, which is chosen by its header if there is none. Raise `Problems` if no column can be the
    identity, with the `command` that names the likeliest, and for what would fail when planning.
    """
    try:
        table = table_of(content_of(file, name), name)
    except SourceTrouble as trouble:
        raise Problems([_problem(name, trouble.message, trouble.line or 1, trouble.column or 1)]) from None
    if not table.rows:
        raise Problems([_problem(name, "the file has no rows below a header, so there is nothing to make tags of", 1)])
    try:
        identity = identity_of(table.columns, table.rows, key)
    except NoIdentity as error:
        cure = ""
        if error.candidates:
            named = f"name one with --key: {listed(map(quoted, error.candidates))}"
            cure = f"; {named}, such as `{command(error.candidates[0])}`"
        elif error.candidates is not None:
            cure = (
                "; no column has a value in every row and no value twice: correct these lines in the list, and run this"
                " again. To make one tag of the first of such rows, begin with `syncengine init` and write a `generate`"
                " block with `distinct` (docs/manifests-from-data.md)"
            )
        raise Problems([_problem(name, f"{error}{cure}", 1, code="no-identity")]) from None
    inside = file.resolve().is_relative_to(folder.resolve())
    where = file.resolve().relative_to(folder.resolve()).as_posix() if inside else f"data/{file.name}"
    status = status_of([column for column in table.columns if column != identity], table.rows)
    manifest, left_out = manifest_of(table, f"../{where}", identity, status)
    copy = {} if inside else {where: content_of(file, name)}
    return Generated({MANIFEST: manifest, **copy}, left_out, status)


def table_of(data: bytes, name: str) -> CsvTable:
    """Return delimiter, encoding, columns and rows. Raise `SourceTrouble` for what would fail when planning."""
    encoding = encoding_of(data, name)
    delimiter = likely_delimiter(with_line_feeds(text_of(data, name, encoding)))
    rows = list(csv_rows(data, name, Form(encoding, delimiter)))
    return CsvTable(delimiter, encoding, tuple(rows[0][1]) if rows else (), rows)


def _problem(name: str, message: str, line: int, column: int = 1, code: str = "bad-source") -> Diagnostic:
    return Diagnostic(severity=Severity.ERROR, code=code, message=message, file=name, line=line, column=column)


# --- what columns hold


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
    candidates = [
        column
        for column in columns
        if not names_persons(column)
        and not holds_addresses((row[column] for _, row in rows), whole=True)
        and not _flaw(column, rows)
    ]
    if key is not None:
        alike = [column for column in columns if column == key] or [c for c in columns if joined(c) == joined(key)]
        if len(alike) != 1:
            hint = suggestion(key, columns) or f"; there are {listed(map(quoted, columns))}"
            raise NoIdentity(f"there is no column {quoted(key)}{hint}")
        if trouble := _flaw(alike[0], rows, str):
            raise NoIdentity(f"column {quoted(alike[0])} cannot name the tags: {trouble}", candidates)
        return alike[0]
    named = [column for column in columns if not names_persons(column)]
    ranks = IDENTITIES if named == list(columns) else IDENTITIES[:-1]  # beside such columns, a name may be a person's
    likely = next((found for rank in ranks if (found := [c for c in named if _main(c) in rank])), [])
    flaws = {column: _flaw(column, rows) for column in likely}
    fit = [column for column, flaw in flaws.items() if not flaw]
    if len(fit) == 1:
        return fit[0]
    if fit:
        raise NoIdentity("the headers of several columns say that they name the tags", fit)
    reasons = [f"column {quoted(column)} cannot name the tags: {flaw}" for column, flaw in flaws.items()]
    raise NoIdentity("; ".join(reasons) or "no header says which column names the tags", candidates)


def names_matters(header: str) -> bool:
    """Return whether a header says that its column is the identity, as `Matter No.` and `Aktenzeichen` do."""
    return not names_persons(header) and any(_main(header) in rank for rank in IDENTITIES[:-1])


def _main(header: str) -> str:
    words = words_of(header)
    kept = [word for word in words if word not in _FILLERS]
    return "".join(kept if len(kept) > 1 or kept == words else words)


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


def listed(items: Iterable[str]) -> str:
    """Return the first items, and how many more there are."""
    shown = list(items)
    more = f" and {len(shown) - LISTED} more" if len(shown) > LISTED else ""
    return ", ".join(shown[:LISTED]) + more


def status_of(columns: Sequence[str], rows: Rows) -> StatusColumn | None:
    """Return the likeliest column with the status of each row, or `None`.

    Its header says so, or all its values do. Of the days on which matters were closed, `""` is what is live, and all
    days are counted as `SOME_DAY`.
    """
    found: list[StatusColumn] = []
    for column in columns:
        counts = Counter(row[column].strip() for _, row in rows)
        plain = {value: joined(value) for value in counts}
        is_status, is_closing = joined(column) in _STATUS, not _CLOSING.isdisjoint(words_of(column))
        if (is_closing or joined(column) in _IS_OPEN) and set(plain.values()) <= _YES | _NO:
            live = [value for value in counts if plain[value] in (_NO if is_closing else _YES)]
        elif is_closing and counts[""] and not set(plain.values()) & (_OPEN | _SHUT):
            counts, live = Counter({"": counts[""], SOME_DAY: counts.total() - counts[""]}), [""]
        else:
            statuses = {value for value, word in plain.items() if word in _OPEN | _SHUT | _OTHER}
            if len(counts) > LISTED or not (is_status or (statuses and statuses >= set(counts) - {""})):
                continue
            shut = [value for value in counts if plain[value] in _SHUT]
            opened = [value for value in counts if plain[value] in _OPEN]
            live = opened or [value for value in counts if value and value not in shut]
        if live:
            found.append(StatusColumn(column, dict(counts), tuple(live)))
    return next(iter([*(each for each in found if joined(each.column) in _STATUS), *found]), None)


# --- the manifest


def manifest_of(table: CsvTable, path: str, identity: str, status: StatusColumn | None) -> tuple[str, tuple[str, ...]]:
    """Return a manifest with one block, whose fields are guessed from the column names, for a person to correct.

    The second value are the columns that are left out.
    """
    values = {column: [row[column] for _, row in table.rows] for column in table.columns}
    free = [
        column
        for column in table.columns
        if column != identity and not names_persons(column) and not holds_addresses(values[column], whole=True)
    ]
    used = {identity: "name"}
    for field, names in (("description", DESCRIPTIONS), ("externalId", EXTERNAL_IDS), ("url", URLS)):
        column = _called([column for column in free if column not in used], names)
        if column is not None:
            used[column] = field
    ragged = {column for column, cells in values.items() if any(cell != cell.strip() for cell in cells)}
    empty = {column for column, cells in values.items() if not all(map(str.strip, cells))}

    def value(column: str, *, optional: bool = False) -> str:
        return _value(column, " | trim" * (column in ragged) + " or none" * (optional and column in empty))

    fields = {field: [f"{field}: {value(column)}"] for column, field in used.items()}
    if (keywords := _called([column for column in free if column not in used], KEYWORDS)) is not None:
        used[keywords] = "keywords"
        fields["keywords"] = ["keywords: " + _value(keywords, " | words(',;')")]
    rest = [column for column in free if column not in used and not holds_addresses(values[column])]
    if rest:
        fields["metadata"] = ["metadata:", *(f"  {_name(column)}: {value(column, optional=True)}" for column in rest)]
    left_out = tuple(column for column in table.columns if column not in used and column not in rest)
    written = [line for field in names_of(Tag) for line in fields.get(field, ())]  # in the order of `fmt`
    source = [f"csv: {_quoted(path)}"]
    if table.delimiter != ",":
        source.append("delimiter: tab" if table.delimiter == "\t" else f"delimiter: {_quoted(table.delimiter)}")
    if table.encoding != "utf-8":
        source.append(f"encoding: {table.encoding}")
    lines = [
        "# yaml-language-server: $schema=../schemas/manifest.schema.json",
        "#",
        "# One tag for each row. The fields were guessed from the names of the columns: check them before you apply.",
        "",
        f"# {VISIBILITY}",
        "defaults:",
        "  tags: {visibility: PRIVATE, managedBy: syncengine}",
        "",
        "generate:",
        f"  - forEach: {{{', '.join(source)}}}",
        "    as: matter",
        *([f"    # when: {_condition(status, trim=status.column in ragged)}"] if status else []),
        "    tags:",
        *(f"      {' ' if number else '-'} {line}" for number, line in enumerate(written)),
    ]
    if left_out:
        lines += [
            "# These columns may hold persons or addresses, and are left out; to use one, move its line to `metadata`:",
            *(f"#         {_name(column)}: {value(column, optional=True)}" for column in left_out),
        ]
    return "\n".join(lines) + "\n", left_out


def _called(columns: Iterable[str], names: Sequence[str]) -> str | None:
    """Return the column with the likeliest of `names`, or `None`."""
    simple = {joined(column): column for column in reversed(list(columns))}
    return next((simple[name] for name in names if name in simple), None)


def _value(column: str, filters: str = "") -> str:
    """Return the template of a cell, as YAML."""
    return _quoted(f"{{{{ {_cell(column)}{filters} }}}}")


def _cell(column: str) -> str:
    is_plain = _IDENTIFIER.fullmatch(column) and column not in _METHODS
    return f"matter.{column}" if is_plain else f"matter[{_escaped(column)}]"


def _condition(status: StatusColumn, *, trim: bool) -> str:
    """Return the condition that a matter is live, with the file's own values, as a plain scalar of YAML."""
    cell = _cell(status.column) + " | trim" * trim
    # In single quotes if nothing must be escaped.
    plain = (value.isprintable() and not {"'", "\\"} & set(value) for value in status.live)
    live = [f"'{value}'" if is_plain else _escaped(value) for value, is_plain in zip(status.live, plain, strict=True)]
    condition = f"{cell} == {live[0]}" if len(live) == 1 else f"{cell} in [{', '.join(live)}]"
    return condition if ": " not in condition and " #" not in condition else _quoted(condition)


def _name(column: str) -> str:
    """Return a column's name as a metadata name in YAML: on one line, and escaped if it would be read as a template."""
    if not column.isprintable():
        column = " ".join("".join(c if c.isprintable() else " " for c in column).split())
    return _quoted(f"{{{{ {_escaped(column)} }}}}" if is_template(column) else column)


def _escaped(text: str) -> str:
    """Return text in double quotes that YAML and Jinja2 both read alike."""
    return '"' + "".join(_ESCAPES.get(c) or (c if c.isprintable() else f"\\U{ord(c):08x}") for c in text) + '"'


def _quoted(text: str) -> str:
    """Return text as a YAML scalar, without quotes if it cannot be misread."""
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_ ./-]*[A-Za-z0-9]|\.\./[A-Za-z0-9_./-]+", text) and text.lower() not in _WORDS:
        return text
    return "'" + text.replace("'", "''") + "'" if '"' in text and text.isprintable() else _escaped(text)

"""Decode a file for the YAML reader: bytes → text, or one finding with its place; and small functions of texts. Pure.

Text that libyaml rejects, or counts differently from an editor, is refused here: bytes that are not UTF-8, control
characters, and the separators (NEL, LS, PS) that end lines in YAML 1.1 but not in YAML 1.2.
"""

from __future__ import annotations

import codecs
import re
import shlex
import unicodedata
from typing import NamedTuple

from syncengine.document.diagnostics import Collector

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""Characters that no name or single line of text may contain."""
CONTROL_IN_PROSE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""Characters that no text of several lines may contain. Tabs and line feeds are allowed."""

_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_FIT = bytes(range(0x20, 0x7F)) + b"\t\n\r"
"""The bytes of ASCII text, with tabs and line ends."""
LINE_END = re.compile("\r\n|\r|\n")
"""A line break as libyaml and editors see it."""
LONGEST_FOLDED = 1_000
"""The most characters of text that is normalised, since sorting accents takes time quadratic in their number."""
_OTHER_ENCODINGS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_SHEET = "save the sheet as CSV (UTF-8)"
_WHOLE = "unpack it"
_READABLE = "decrypt it"
_FOREIGN: tuple[tuple[bytes, bytes, str, str], ...] = (
    (b"PK\x03\x04", b"xl/", "an Excel workbook (.xlsx)", _SHEET),
    (b"PK\x03\x04", b"opendocument.spreadsheet", "an OpenDocument spreadsheet (.ods)", _SHEET),
    (b"PK\x03\x04", b"word/", "a Word document (.docx)", "save its table as CSV (UTF-8)"),
    (b"PK\x03\x04", b"", "a ZIP archive", _WHOLE),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "EncryptedPackage".encode("utf-16-le"), "an encrypted workbook", _SHEET),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"", "an Excel workbook (.xls)", _SHEET),
    (b"\x1f\x8b", b"", "compressed with gzip", _WHOLE),
    (b"BZh", b"1AY&SY", "compressed with bzip2", _WHOLE),
    (b"\xfd7zXZ\x00", b"", "compressed with xz", _WHOLE),
    (b"\x28\xb5\x2f\xfd", b"", "compressed with zstd", _WHOLE),
    (b"7z\xbc\xaf\x27\x1c", b"", "a 7-Zip archive", _WHOLE),
    (b"Rar!\x1a\x07", b"", "a RAR archive", _WHOLE),
    (b"%PDF-", b"", "a PDF document", "export the data as CSV or JSON instead"),
    (b"SQLite format 3\x00", b"", "a SQLite database", "read it with `sql: {file: …, query: …}`"),
    (b"PAR1", b"", "a Parquet file", "export it as CSV or JSON"),
    (b"\x00GITCRYPT\x00", b"", "encrypted with git-crypt", "run `git-crypt unlock`"),
    (b"age-encryption.org/", b"", "encrypted with age", _READABLE),
    (b"-----BEGIN AGE ENCRYPTED FILE", b"", "encrypted with age", _READABLE),
    (b"-----BEGIN PGP MESSAGE", b"", "encrypted with OpenPGP", _READABLE),
    (b"\x85\x01", b"", "encrypted with OpenPGP", _READABLE),
    (b"Salted__", b"", "encrypted with OpenSSL", _READABLE),
    (b"$ANSIBLE_VAULT;", b"", "encrypted with Ansible Vault", _READABLE),
    (b"version https://git-lfs", b"oid sha256:", "only a pointer to its content in Git LFS", "run `git lfs pull`"),
    (b"<!doctype html", b"", "a web page, perhaps of a log-in", "export the data again"),
    (b"<html", b"", "a web page, perhaps of a log-in", "export the data again"),
    (b"<?xml", b"", "an XML document", "export the data as CSV or JSON instead"),
)
"""The beginnings of files that are no data, each with bytes that come later, what the file is, and the cure."""
MERGE_CONFLICT = "merge-conflict"
"""The code of a conflict that Git has left in a file, or finds when it merges."""
LEFT_OVER = "this line is a mark of a merge conflict that is not resolved: keep what is right around it, and remove it"
_MARKS = ("<" * 7, "|" * 7, "=" * 7, ">" * 7)
"""The shortest marks of Git: before our side, the base and their side, and at the end. An attribute lengthens them."""
_MARKER = re.compile(r"^(<{7,}|\|{7,}|={7,}|>{7,})(?= |\r?$)(?: ([^\r\n]*))?", re.MULTILINE)
_NAMES = {"\x00": "NUL", "\t": "tab", "\n": "line feed", "\r": "carriage return", "\x85": "next line"}
_ESCAPE = re.compile(r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|.)", re.DOTALL)
_REPAIRED = re.compile(r"\\U(000[0-9a-f]{5}|0010[0-9a-f]{4})")


def foreign(data: bytes) -> str | None:
    """Return what a file is and what to do, if it is none that a person writes: a workbook, an archive, a web page."""
    start = data[:64].removeprefix(codecs.BOM_UTF8).lstrip().lower()
    for begin, within, what, cure in _FOREIGN:
        if (data.startswith(begin) or start.startswith(begin)) and within in data:
            return f"the file is {what}: {cure}"
    return None


class Conflict(NamedTuple):
    """An unresolved conflict of a merge in a file: the line where it begins, from 1, and what to do."""

    line: int
    message: str


def conflicts(text: str) -> list[Conflict]:
    """Return the conflicts that Git has left in a text. A marker that stands alone, as after half a cure, is one."""
    if not any(mark in text for mark in _MARKS):
        return []
    found, begun, ours, size = list[Conflict](), list[int](), "", 0
    for match in _MARKER.finditer(text):
        line, mark, name = text.count("\n", 0, match.start()) + 1, match[1], match[2] or ""
        if begun and len(mark) != size:
            continue  # of a conflict in the base, which Git gives longer marks
        if mark[0] == "<":
            found += [Conflict(each, LEFT_OVER) for each in begun]  # whose end is not there
            begun, ours, size = [line], name, len(mark)
        elif not begun:
            found.append(Conflict(line, LEFT_OVER))
        elif mark[0] == ">":
            between = f" between {ours!r} and {name!r}" if ours and name else ""
            keep = f"keep what is right of lines {begun[0]} to {line}, without the marks of Git"
            found.append(Conflict(begun[0], f"a merge conflict{between} is not resolved: {keep}"))
            begun = []
        else:
            begun.append(line)
    return [*found, *(Conflict(each, LEFT_OVER) for each in begun)]


def has_conflicts(text: str, findings: Collector) -> bool:
    """Report each conflict that Git has left in a text, and return whether there is one."""
    found = conflicts(text)
    for line, message in found:
        findings.at(MERGE_CONFLICT, line, 1, message)
    return bool(found)


def decoded(data: bytes, findings: Collector) -> str | None:
    """Return a file's text without a byte order mark, or report a problem and return `None`."""
    if what := foreign(data):
        findings.at("not-text", 1, 1, what)
        return None
    for mark, name in _OTHER_ENCODINGS:
        if data.startswith(mark) or (name == "UTF-16" and data[:2].count(0) == 1):
            findings.at("not-utf8", 1, 1, f"the file is encoded as {name}; save it as UTF-8")
            return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = _place(data[: error.start].decode("utf-8", "replace"))
        findings.at("not-utf8", line, column, f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8")
        return None
    if has_conflicts(text, findings):
        return None
    # Two quick tests pass nearly all files; the pattern looks at each character.
    if not data.translate(None, _FIT) or text.replace("\n", "").isprintable():
        return text
    unfit = _UNFIT.search(text)
    if unfit is None:
        return text
    line, column = _place(text[: unfit.start()])
    findings.at("control-character", line, column, f"the file contains {character(unfit.group())}; remove it")
    return None


def character(text: str) -> str:
    """Return a control character in words."""
    name = _NAMES.get(text) or unicodedata.name(text, "").lower()
    return f"the control character U+{ord(text):04X}" + (f" ({name})" if name else "")


def _place(before: str) -> tuple[int, int]:
    *lines, last = lines_of(before)
    return len(lines) + 1, len(last) + 1


def folded(text: str) -> str:
    """Return equal text for texts that differ in case or Unicode form only; beyond `LONGEST_FOLDED`, in case only."""
    if text.isascii() or len(text) > LONGEST_FOLDED:
        return text.casefold()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def either_case(text: str) -> str:
    """Return a regular expression for a text in any case, for dialects without a flag to ignore case."""
    return "".join(f"[{c.lower()}{c.upper()}]" if c.isalpha() else c for c in text)


def to_camel(name: str) -> str:
    """Return a snake_case name in camelCase, as in files and JSON."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def with_line_feeds(text: str) -> str:
    """Return text with the line ends CRLF and CR, as in CSV files of Windows and in databases, replaced by LF."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def lines_of(text: str) -> list[str]:
    """Return the lines of a text as libyaml and editors count them."""
    return LINE_END.split(text)


class Repaired(NamedTuple):
    """Text whose escaped surrogate pairs became single escapes. `undone` restores the spelling of other scalars."""

    text: str
    originals: dict[str, str]

    def undone(self, text: str) -> str:
        """Return the original text of a scalar that is not double-quoted, in which a backslash is no escape."""
        if not self.originals:
            return text
        return _REPAIRED.sub(lambda m: self.originals.get(m.group(), m.group()), text)


def repaired(text: str) -> Repaired:
    r"""Write JSON's `\ud83d\ude00` as `\U0001f600`, which libyaml understands. Text with both kinds is unchanged."""
    if "\\u" not in text or not re.search(r"\\u[dD][89abAB]", text) or _REPAIRED.search(text):
        return Repaired(text, {})
    originals: dict[str, str] = {}

    def join(match: re.Match[str]) -> str:
        high, low = match.groups()
        if high is None:
            return match.group()
        code = 0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00
        return originals.setdefault(f"\\U{code:08x}", match.group()) and f"\\U{code:08x}"

    return Repaired(_ESCAPE.sub(join, text), originals)


def as_word(text: str) -> str:
    """Return the text as one word of a command to copy into a shell, without any letter that a terminal interprets."""
    if text.isprintable():
        return shlex.quote(text)
    plain = text.replace("\\", r"\\").replace("'", r"\'")
    return f"$'{''.join(letter if letter.isprintable() else _escape(ord(letter)) for letter in plain)}'"


def _escape(code: int) -> str:
    """Return the escape of a letter, or of a byte of a file name that is not UTF-8, between `$'` and `'`."""
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

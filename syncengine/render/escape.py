"""Make untrusted text safe to show, and measure, cut and wrap text in terminal cells. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate

_JOINERS = frozenset("\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}")  # spelling, in several scripts and in emoji
_WIDE = frozenset("WF")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
LONGEST = 60
"""The number of letters above which a value in a row is cut."""
EXCERPT = 240
"""The number of letters that an excerpt of one text shows, without the `…` between its parts."""
LEAST_WINDOW = 40
"""The smallest number of letters of one part of an excerpt: its context, and room for a word or two."""
COMPARED = 100_000
"""The largest product of the numbers of words in two texts that are compared word by word, in a few milliseconds."""
_CONTEXT = 12  # a word or two on each side
_WORD = re.compile(r"[^\W\u3000-\U0010ffff]+[^\w\u3000-\U0010ffff]*|.", re.DOTALL)
"""A word with what follows it; where words are written without blanks, a letter."""
_MARKED = re.compile(r"##(?=[A-Za-z]*\[)")
"""Commands of CI runners that work anywhere in a line: `##[error]`, `##vso[…]`, `##teamcity[…]`."""
_LEADING = re.compile(r"^((?:[^\S\n]|\x1b\[[0-9;]*m)*:):", re.M)
"""Commands of CI runners that work only at the start of a line, after optional blanks: `::error::`."""


def visible(text: str) -> str:
    """Return the text with control characters, terminal escapes, direction overrides and line ends escaped."""
    return text if text.isprintable() else "".join(map(_visible_letter, text))


def _visible_letter(letter: str) -> str:
    if letter.isprintable() or letter in _JOINERS or unicodedata.category(letter) == "Zs":
        return letter
    return letter.encode("unicode_escape").decode("ascii")


def harmless(text: str) -> str:
    """Return the text with commands of CI runners escaped.

    The escapes are valid JSON, so that a printed JSON document keeps its meaning.
    """
    if "##" in text:
        text = _MARKED.sub(r"#\\u0023", text)
    return _LEADING.sub(r"\1\\u003a", text) if "::" in text else text


def file_name(text: str) -> str:
    """Return a file's name with control characters and commands of CI runners escaped, safe for any log."""
    return harmless(visible(text))


def quoted(text: str) -> str:
    """Return the text between double quotes, with quotes and backslashes in it escaped."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"') if '"' in text or "\\" in text else text
    return f'"{visible(escaped)}"'


def cells(text: str) -> int:
    """Return the number of columns that the text takes on a terminal."""
    if text.isascii():
        return len(text)
    others = _NOT_ASCII.findall(text)
    return len(text) - len(others) + sum(map(_letter_cells, others))


def _letter_cells(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in _WIDE else 1


def cut(text: str, width: int) -> str:
    """Return the text cut to at most `width` columns; a cut text ends with `…`."""
    if cells(text) <= width:
        return text
    characters, room = [], width - 1
    for letter in text:
        room -= _letter_cells(letter)
        if room < 0:
            break
        characters.append(letter)
    return "".join(characters) + "…"


def wrapped(text: str, width: int) -> list[str]:
    """Return the text in lines of at most `width` columns, broken between words where possible."""
    lines = [""]
    for word in _words(text, width):
        if lines[-1] and cells(lines[-1]) + 1 + cells(word) > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines


def _words(text: str, width: int) -> Iterator[str]:
    """Yield the words of a text; a word that is wider than a line comes in pieces."""
    for word in text.split(" "):
        rest = word
        while cells(rest) > width:
            piece = cut(rest, width)[:-1] or rest[0]
            yield piece
            rest = rest[len(piece) :]
        yield rest


def excerpts(before: str, after: str, longest: int = LONGEST) -> tuple[str, str]:
    """Return both texts, or of long ones only the parts that differ, each with a little context.

    When the parts are longer than `EXCERPT`, each is cut to its share, and the last ones of very many are left out.
    """
    if max(len(before), len(after)) <= longest:
        return before, after
    edits = _edits(before, after)
    return _windows(before, [old for old, _ in edits]), _windows(after, [new for _, new in edits])


def shared_length(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the common prefix of two sequences, in items (letters of a text)."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


_Place = tuple[int, int]
"""The first letter of a part of a text, and the first one behind it."""


def _edits(before: str, after: str) -> list[tuple[_Place, _Place]]:
    """Return where two texts differ, word by word; differences with little between them are one."""
    head = shared_length(before, after)
    tail = shared_length(before[head:][::-1], after[head:][::-1])
    old, new = (_WORD.findall(text[head : len(text) - tail]) for text in (before, after))
    if len(old) * len(new) > COMPARED:
        return [((head, len(before) - tail), (head, len(after) - tail))]
    old_ends, new_ends = (list(accumulate(map(len, words), initial=head)) for words in (old, new))
    edits: list[tuple[_Place, _Place]] = []
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        one, other = (old_ends[a], old_ends[b]), (new_ends[c], new_ends[d])
        # Closer ones would show the letters between them twice.
        if edits and one[0] - edits[-1][0][1] <= 2 * _CONTEXT:
            first, second = edits.pop()
            one, other = (first[0], one[1]), (second[0], other[1])
        edits.append((one, other))
    return edits or [((head, head), (head, head))]


def _windows(text: str, places: Sequence[_Place]) -> str:
    """Return the parts of a text at the places with a little context, and `…` for what is between and around them."""
    windows = [(max(0, start - _CONTEXT), min(len(text), end + _CONTEXT)) for start, end in places]
    if sum(end - start for start, end in windows) > EXCERPT:
        windows = windows[: EXCERPT // LEAST_WINDOW]
        share = EXCERPT // len(windows)
        windows = [(start, min(end, start + share)) for start, end in windows]
    parts = "…".join(text[start:end] for start, end in windows)
    return ("…" if windows[0][0] else "") + parts + ("…" if windows[-1][1] < len(text) else "")


# --- letters that look like others

_WHOLE_WORDS = re.compile(r"\w+")
_INVISIBLE = frozenset({"Cf", "Zs", "Mn", "Me", "Cc", "Zl", "Zp"})


def unusual_letters(text: str) -> tuple[str, ...]:
    """Return invisible letters and those of another script in Latin words: `U+0435 CYRILLIC SMALL LETTER IE`."""
    if text.isascii():
        return ()
    letters = [letter for letter in text if letter != " " and unicodedata.category(letter) in _INVISIBLE]
    for word in _WHOLE_WORDS.findall(text):
        foreign = [letter for letter in word if letter.isalpha() and not _is_latin(letter)]
        if any(letter.isalpha() and _is_latin(letter) for letter in word):
            letters += foreign
    return tuple(f"U+{ord(letter):04X} {unicodedata.name(letter, '')}".rstrip() for letter in dict.fromkeys(letters))


def _is_latin(letter: str) -> bool:
    return letter.isascii() or unicodedata.name(letter, "").startswith("LATIN ")

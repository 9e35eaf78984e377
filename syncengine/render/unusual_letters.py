"""Text → its invisible or confusable letters: joiners, odd blanks, marks, two scripts in one word; pure."""

from __future__ import annotations

import re
import unicodedata

_WORDS = re.compile(r"\w+")
_INVISIBLE = frozenset({"Cf", "Zs", "Mn", "Me", "Cc", "Zl", "Zp"})


def unusual_letters(text: str) -> tuple[str, ...]:
    """Return the unusual letters of a text, each once, in a form like `U+0435 CYRILLIC SMALL LETTER IE`."""
    if text.isascii():
        return ()
    letters = [letter for letter in text if letter != " " and unicodedata.category(letter) in _INVISIBLE]
    letters += [letter for word in _WORDS.findall(text) for letter in _strangers(word)]
    return tuple(f"U+{ord(letter):04X} {unicodedata.name(letter, '')}".rstrip() for letter in dict.fromkeys(letters))


def _strangers(word: str) -> list[str]:
    """Return the letters of a word that are not Latin, when the word also has Latin letters."""
    if word.isascii():
        return []
    foreign = [letter for letter in word if letter.isalpha() and not _is_latin(letter)]
    is_mixed = any(letter.isalpha() and _is_latin(letter) for letter in word)
    return foreign if is_mixed else []


def _is_latin(letter: str) -> bool:
    return letter.isascii() or unicodedata.name(letter, "").startswith("LATIN ")

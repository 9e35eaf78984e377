"""The encodings that data files may have, under all names that people use for them. Data; pure.

Python's other codecs are left out: some take quadratic time (punycode), and some do not encode text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from syncengine.document.diagnostics import suggestion
from syncengine.document.nodes import quoted
from syncengine.document.text import either_case
from syncengine.document.validation import problem
from syncengine.project.types import text_of

EXPECTED = "an encoding such as utf-8 or cp1252"
_PAGES = (
    *(437, 720, 737, 775, 850, 852, 855, 857, 858, *range(860, 867), 869, 874),
    *(932, 949, 950, 1006, 1125, *range(1250, 1259)),
)
_PARTS_OF_8859 = (*range(1, 12), *range(13, 17))


def _names() -> Iterator[tuple[str, str]]:
    """Yield the names of encodings in lower case, with `-` where it is optional, and the codec of each."""
    for name in ("utf-8", "utf-8-sig", *(f"utf-{bits}{end}" for bits in (16, 32) for end in ("", "-le", "-be"))):
        yield name, name
    yield from (("ascii", "ascii"), ("us-ascii", "ascii"))
    for page in _PAGES:
        yield f"cp{page}", f"cp{page}"
        yield f"windows-{page}" if page >= 1250 else f"ibm{page}", f"cp{page}"
    for part in _PARTS_OF_8859:
        yield f"iso-8859-{part}", f"iso8859-{part}"
    for latin, part in enumerate((1, 2, 3, 4, 9, 10, 13, 14, 15, 16), 1):
        yield f"latin-{latin}", f"iso8859-{part}"
    for name in ("koi8-r", "koi8-u", "tis-620", "gb2312", "gbk", "gb18030", "big5", "big5-hkscs", "euc-jp", "euc-kr"):
        yield name, name.replace("-", "_")
    yield from (("shift-jis", "shift_jis"), ("sjis", "shift_jis"), ("iso-2022-jp", "iso2022_jp"), ("johab", "johab"))
    for script in ("roman", "cyrillic", "greek", "turkish", "latin2", "iceland"):
        yield f"mac-{script}", f"mac_{script}"


NAMES = dict(_names())
_BY_LETTERS = {name.replace("-", ""): codec for name, codec in NAMES.items()}


def codec_of(text: str) -> str | None:
    """Return Python's name of an encoding, or `None` when the encoding is not allowed."""
    return _BY_LETTERS.get(re.sub("[-_ ]", "", text).lower())


def encoding(value: Any) -> str:
    """Return Python's name of an encoding. Raise a problem for an unknown one."""
    text = text_of(value, EXPECTED)
    if (codec := codec_of(text)) is None:
        raise problem("bad-value", f"must be {trouble(text)}")
    return codec


def trouble(text: str) -> str:
    """Return the end of a message about an unknown encoding, with the nearest known name."""
    return f"{EXPECTED}, not {quoted(text)}{suggestion(text.lower(), NAMES)}"


def pattern(names: Iterable[str]) -> str:
    """Return a regular expression for the names in any case, in which `-` may be `_`, a blank, or left out."""
    return f"^(?:{'|'.join(either_case(name).replace('-', '[-_ ]?') for name in sorted(names))})$"


SCHEMA = {"type": "string", "pattern": pattern(NAMES)}

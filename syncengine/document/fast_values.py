"""A value as it is written in a boring file → text, list or map; pure.

What the expressions of `fast_reader` have matched is taken apart here; whatever is not certain raises `NotPlain`.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache


class NotPlain(Exception):
    """Something that is not boring."""


QUOTES = frozenset("\"'")

_REST = r"[^\n:#]*+(?:(?::(?=[^ \n])|(?<! )\#)[^\n:#]*+)*+(?<! )"
_NOT_NULL = r"(?![nN](?:ull|ULL)\b)"
_FIRST = _NOT_NULL + r"""[^\s\-?:,\[\]{}#&*!|>'"%@`~<=]"""
_SINGLE = r"'[^']*+(?:''[^']*+)*+'"
DOUBLE = r'"[^"]*+"'
"""Of texts without a backslash."""
DOUBLE_UNESCAPED = r'"[^"\\]*+"'
_QUOTED = rf"{DOUBLE_UNESCAPED}|{_SINGLE}"
_IN_FLOW = _FIRST + r"[^\n:#,?\[\]{}]*+(?::(?=[^ \n:#,?\[\]{}])[^\n:#,?\[\]{}]*+)*+(?<! )"
KEY = rf"""(?:{_FIRST}[^\n:#,?\[\]{{}}"'\\]{{0,200}}+(?<! )|"[^"\\\n]{{0,200}}+"|'[^'\n]{{0,200}}+')"""
_FLOW_END = r" *+(?:,|\Z)|(.+)"
_FLOW_ITEMS = re.compile(f" *+({_IN_FLOW}|{_QUOTED}){_FLOW_END}", re.DOTALL)
_FLOW_PAIRS = re.compile(
    rf""" *+("[^"]*+"|'[^']*+'|[^:]++): ++(?:"([^"]*+)"|({_IN_FLOW}|{_SINGLE})){_FLOW_END}""", re.DOTALL
)
"""Items one after the other; what does not fit is in the last group of the last. Keys are looked at by `_name`."""
_BLOCK_PAIRS = re.compile(r"""\n *+("[^"]*+"|'[^']*+'|[^:#\n]++): ++("[^"]*+"|'(?:[^']|'')*+'|[^\n]++)""")
"""Less strict, for what is known to be a block."""
_A_KEY = re.compile(KEY)
BETWEEN = r"(?:\n(?: *+\#[^\n]*+)?(?=\n))"
"""A line that is empty or a comment, so that there is a `#` or two line feeds side by side."""
SKIPPED = re.compile(BETWEEN + "++")


def scalar(indent: str, double: str = DOUBLE_UNESCAPED) -> str:
    """A scalar whose further lines, if any, stand deeper than `indent`; those of quoted ones: see `_folded`."""
    return rf"(?:{_FIRST}{_REST}(?:\n{indent} ++(?![#:]){_REST})*+|{double}|{_SINGLE})"


def text_of(token: str) -> str:
    """What a scalar says."""
    if token[0] == '"':
        token = token[1:-1]
    elif token[0] == "'":
        token = token[1:-1].replace("''", "'")
    return _folded(token) if "\n" in token else token


def _folded(text: str) -> str:
    """Several lines as one. No line may be empty or start at the left margin, and only the last may end in blanks."""
    first, *others = text.split("\n")
    if " \n" in text or not all(line.startswith(" ") and line.strip(" ") for line in others):
        raise NotPlain
    return " ".join([first, *[line.lstrip(" ") for line in others]])


def list_of(written: str) -> list[str]:
    """The texts of a list."""
    if written[0] == "\n":
        return _block_list(written)
    if written[:3] == ' ["' and written[-2] == '"' and "\\" not in written and "\n" not in written:
        texts = written[3:-2].split('", "')
        if written.count('"') == 2 * len(texts):
            return texts
    found = _FLOW_ITEMS.findall(written, written.index("[") + 1, len(written) - 1)
    if "\n" in written or (found and found[-1][-1]):
        raise NotPlain
    return [text_of(token) for token, _ in found]


def _block_list(written: str) -> list[str]:
    if "#" in written or "\n\n" in written:
        tokens = _entries(_indent_of(written), "- ").findall(written)
    else:
        tokens = written.split(written[: written.index("-") + 2])[1:]
        if written.count("\n") == len(tokens) and "'" not in written and '"' not in written:
            return tokens
    return [text_of(token) for token in tokens]


def map_of(written: str) -> dict[str, str]:
    """The names and texts of a mapping."""
    if written[0] == "\n":
        return _block_map(written)
    pairs = _FLOW_PAIRS.findall(written, written.index("{") + 1, len(written) - 1)
    if "\n" in written or "\\" in written or (pairs and pairs[-1][-1]):
        raise NotPlain
    if "'" in written:
        pairs = [(name, quoted or (token and text_of(token)), "", "") for name, quoted, token, _ in pairs]
    found = {_name(name): quoted or token for name, quoted, token, _ in pairs}
    if len(found) < len(pairs):
        raise NotPlain
    return found


def _block_map(written: str) -> dict[str, str]:
    pairs = _BLOCK_PAIRS.findall(written)
    if len(pairs) < written.count("\n"):
        pairs = _entries(_indent_of(written), f"({KEY}): ++").findall(written)
    found = {_name(name): text_of(token) for name, token in pairs}
    if len(found) < len(pairs):
        raise NotPlain
    return found


@lru_cache(maxsize=4096)
def _name(token: str) -> str:
    """Interned, as thousands of items share them."""
    if not _A_KEY.fullmatch(token):
        raise NotPlain
    return sys.intern(text_of(token))


def _indent_of(written: str) -> str:
    """Of the entries of a block, which comments may precede."""
    start = skipped.end() if (skipped := SKIPPED.match(written)) else 0
    return written[start + 1 : len(written) - len(written[start + 1 :].lstrip(" "))]


@lru_cache(maxsize=64)
def _entries(indent: str, entry: str) -> re.Pattern[str]:
    return re.compile(f"\n{indent}{entry}({scalar(indent)})")

"""Parse the values that `fast_reader` matched in a plain file: text → text, list or map. Pure.

Raise `NotPlain` when anything is uncertain.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache


class NotPlain(Exception):
    """Text outside the plain subset of YAML, which the full reader must read."""


QUOTES = frozenset("\"'")

_REST = r"[^\n:#]*+(?>(?:(?::(?=[^ \n])|(?<! )\#)[^\n:#]*+)*)(?<! )"
_NOT_NULL = r"(?![nN](?:ull|ULL)\b)"
_FIRST = _NOT_NULL + r"""[^\s\-?:,\[\]{}#&*!|>'"%@`~<=]"""
_SINGLE = r"'[^']*+(?>(?:''[^']*+)*)'"
DOUBLE = r'"[^"]*+"'
"""A double-quoted scalar in a text without backslashes."""
DOUBLE_UNESCAPED = r'"[^"\\]*+"'
_QUOTED = rf"{DOUBLE_UNESCAPED}|{_SINGLE}"
_IN_FLOW = _FIRST + r"[^\n:#,?\[\]{}]*+(?>(?::(?=[^ \n:#,?\[\]{}])[^\n:#,?\[\]{}]*+)*)(?<! )"
KEY = rf"""(?:{_FIRST}[^\n:#,?\[\]{{}}"'\\]{{0,200}}+(?<! )|"[^"\\\n]{{0,200}}+"|'[^'\n]{{0,200}}+')"""
_FLOW_END = r" *+(?:,|\Z)|(.+)"
_FLOW_ITEMS = re.compile(f" *+({_IN_FLOW}|{_QUOTED}){_FLOW_END}", re.DOTALL)
_FLOW_PAIRS = re.compile(
    rf""" *+("[^"]*+"|'[^']*+'|[^:]++): ++(?:"([^"]*+)"|({_IN_FLOW}|{_SINGLE})){_FLOW_END}""", re.DOTALL
)
"""The next pair of a flow map. Its last group is text that does not fit, which ends the map. `_name` checks keys."""
_BLOCK_PAIRS = re.compile(r"""\n *+("[^"]*+"|'[^']*+'|[^:#\n]++): ++("[^"]*+"|'(?>(?:[^']|'')*)'|[^\n]++)""")
"""The next pair of a block map, in a less strict form for text that is known to be a block."""
_A_KEY = re.compile(KEY)
BETWEEN = r"(?:\n(?: *+\#[^\n]*+)?(?=\n))"
"""A pattern for an empty line or a comment. Text without `#` and without two adjacent line feeds has neither."""
SKIPPED = re.compile(f"(?>{BETWEEN}+)")


def scalar(indent: str, double: str = DOUBLE_UNESCAPED) -> str:
    """Return the expression for a scalar. Further lines must be indented deeper than `indent`, or pass `_folded`."""
    return rf"(?:{_FIRST}{_REST}(?>(?:\n{indent} ++(?![#:]){_REST})*)|{double}|{_SINGLE})"


def text_of(token: str) -> str:
    """Return the text of a scalar, without quotes and in one line."""
    if token[0] == '"':
        token = token[1:-1]
    elif token[0] == "'":
        token = token[1:-1].replace("''", "'")
    return _folded(token) if "\n" in token else token


def _folded(text: str) -> str:
    """Join lines into one. No line may be empty or start at the left margin, and only the last may end in blanks."""
    first, *others = text.split("\n")
    if " \n" in text or not all(line.startswith(" ") and line.strip(" ") for line in others):
        raise NotPlain
    return " ".join([first, *[line.lstrip(" ") for line in others]])


def list_of(text: str) -> list[str]:
    """Return the texts of a flow or block list."""
    if text[0] == "\n":
        return _block_list(text)
    if text[:3] == ' ["' and text[-2] == '"' and "\\" not in text and "\n" not in text:
        texts = text[3:-2].split('", "')
        if text.count('"') == 2 * len(texts):
            return texts
    items = _FLOW_ITEMS.findall(text, text.index("[") + 1, len(text) - 1)
    if "\n" in text or (items and items[-1][-1]):
        raise NotPlain
    return [text_of(token) for token, _ in items]


def _block_list(text: str) -> list[str]:
    if "#" in text or "\n\n" in text:
        tokens = _entries(_indent_of(text), "- ").findall(text)
    else:
        tokens = text.split(text[: text.index("-") + 2])[1:]
        if text.count("\n") == len(tokens) and "'" not in text and '"' not in text:
            return tokens
    return [text_of(token) for token in tokens]


def map_of(text: str) -> dict[str, str]:
    """Return the names and texts of a flow or block mapping."""
    if text[0] == "\n":
        return _block_map(text)
    pairs = _FLOW_PAIRS.findall(text, text.index("{") + 1, len(text) - 1)
    if "\n" in text or "\\" in text or (pairs and pairs[-1][-1]):
        raise NotPlain
    if "'" in text:
        pairs = [(name, quoted or (token and text_of(token)), "", "") for name, quoted, token, _ in pairs]
    entries = {_name(name): quoted or token for name, quoted, token, _ in pairs}
    if len(entries) < len(pairs):
        raise NotPlain
    return entries


def _block_map(text: str) -> dict[str, str]:
    pairs = _BLOCK_PAIRS.findall(text)
    if len(pairs) < text.count("\n"):
        pairs = _entries(_indent_of(text), f"({KEY}): ++").findall(text)
    entries = {_name(name): text_of(token) for name, token in pairs}
    if len(entries) < len(pairs):
        raise NotPlain
    return entries


@lru_cache(maxsize=4096)
def _name(token: str) -> str:
    """Return the text of a key, interned because thousands of items share it."""
    if not _A_KEY.fullmatch(token):
        raise NotPlain
    return sys.intern(text_of(token))


def _indent_of(text: str) -> str:
    """Return the indentation of a block's entries, which comments may precede."""
    start = skipped.end() if (skipped := SKIPPED.match(text)) else 0
    return text[start + 1 : len(text) - len(text[start + 1 :].lstrip(" "))]


@lru_cache(maxsize=64)
def _entries(indent: str, entry: str) -> re.Pattern[str]:
    return re.compile(f"\n{indent}{entry}({scalar(indent)})")

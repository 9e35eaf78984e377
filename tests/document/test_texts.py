"""JSON from outside is a value or `InvalidJson`, whatever its bytes are; a shell reads back the file of a command."""

import json
import os
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncengine.document.json_text import InvalidJson, canonical_json, decode_json, encode_json
from syncengine.document.text import as_word

DEEP = 100_000
NOT_JSON = (
    *(b"[" * DEEP, b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP + b"1" + b"}" * DEEP),
    *(b"", b" \n", b"\0", b"\xef\xbb\xbf{}", "{}".encode("utf-16"), b"{} x", b"{}{}", b"[1,]", b"{'a':1}", b"/**/1"),
    *(rb'"\ud800"', rb'"\udc00x"', b'"\xed\xa0\x80"', b'"\xff"', b'{"\xff":1}', b'"\xc0\x80"', b'"a\tb"', rb'"\x41"'),
    *(b"NaN", b"-Infinity", b"1e999", b"-1e999", b"9" * 5000, b"01", b"+1", b".5", b"5.", b"True", b"0x10"),
)
PIECES = (*rb'[ ] { } , : " \ \u d83d NaN e999'.split(), b"\xff", b"\0", b"9" * 30, b" ")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("content", NOT_JSON, ids=lambda content: repr(content[:20]))
def test_what_is_not_json_raises_one_error(content: bytes) -> None:
    with pytest.raises(InvalidJson):
        decode_json(content)


def _refused(name: str) -> Any:
    raise ValueError(name)


@given(VALUES, st.integers(0, 200), st.integers(0, 4), st.sampled_from(PIECES))
def test_damaged_json_is_read_as_other_readers_do_or_not_at_all(value: Any, at: int, cut: int, piece: bytes) -> None:
    """Bytes are cut out and put in anywhere. Numbers beyond all floats are an error, not infinite."""
    content = json.dumps(value, ensure_ascii=False).encode()
    at %= len(content) + 1
    content = content[:at] + piece + content[at + cut :]
    try:
        found = decode_json(content)
    except InvalidJson:
        return
    assert found == json.loads(content, parse_constant=_refused)


@given(VALUES)
def test_a_value_is_read_back_as_it_was_written(value: Any) -> None:
    """Whole numbers keep all their digits, also beyond 64 bits."""
    assert decode_json(encode_json(value)) == decode_json(canonical_json(value)) == value
    assert canonical_json(value) == canonical_json(decode_json(json.dumps(value, sort_keys=True)))


NAMES = [
    b"plan.json",
    b"my plan's.json",
    b"caf\xc3\xa9.json",
    b"caf\xe9.json",
    b"caf\xe9b\\.json",
    b"a\x1b[31m\n'.json",
]


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_a_word_is_read_back_by_a_shell(name: bytes) -> None:
    """The name of a file is bytes, which need not be UTF-8."""
    word = as_word(os.fsdecode(name))
    assert word.isprintable()
    done = subprocess.run(
        ["bash", "-c", f"printf %s {word}"], capture_output=True, env={"LC_ALL": "C.UTF-8"}, check=True
    )
    assert done.stdout == name

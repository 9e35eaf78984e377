"""Commands to copy: a shell reads back the very file that they name, and a terminal interprets nothing in them."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from syncengine.document.text import as_word

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

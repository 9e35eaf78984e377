"""The form of a plan's file as it was written before, to be refused by name; pure. The form of today is in `saved`.

All of it stood in one line: behind the shown document `execution`, one JSON value, and `digest`.
"""

from __future__ import annotations

from syncengine.document.digest import sha256_of

EXECUTION, DIGEST, END = b',"execution":{', b',"digest":"', b'"}'


def is_sealed(whole: bytes) -> bool:
    """Whether its digest is right."""
    content, _, digest = whole.removesuffix(END).rpartition(DIGEST)
    return digest.decode("ascii", "replace") == sha256_of(content)

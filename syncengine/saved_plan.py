"""plan ↔ file. A saved plan holds everything that its apply needs, and reads no manifest (engine.md §6).

The file is the machine format of product.md §7 with one more member, `execution`: the calls, what they leave, and
the digests of the rows that they stand on.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import orjson
from pydantic import TypeAdapter, ValidationError

from syncengine.errors import SyncengineError
from syncengine.plan import Plan

FORMAT = "syncengine.plan/v1"

_ADAPTER = TypeAdapter(Plan)


def save(plan: Plan, document: Mapping[str, object], path: Path) -> None:
    """Write `plan` beside its public `document`, readable by its owner alone (engine.md 1.4)."""
    execution = _ADAPTER.dump_python(plan, mode="json")
    content = orjson.dumps({**document, "digest": _digest(execution), "execution": execution})
    try:
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except OSError as error:
        raise SyncengineError(f"the plan cannot be written to {path}: {error.strerror}", code="plan-file") from None


def is_saved_plan(path: Path) -> bool:
    """Whether the file is one of our documents, told by its `format` key, and no manifest. `load` wants a plan."""
    try:
        with path.open("rb") as file:
            start = file.read(200).lstrip()
    except OSError:
        return False
    return start.startswith(b"{") and b'"format"' in start and b'"syncengine.' in start


def load(path: Path) -> Plan:
    """Read a saved plan; SyncengineError (`plan-file`) for anything that `save` did not write."""
    try:
        document = orjson.loads(path.read_bytes())
    except OSError as error:
        raise SyncengineError(f"the plan {path} cannot be read: {error.strerror}", code="plan-file") from None
    except orjson.JSONDecodeError as error:
        raise SyncengineError(f"{path} is not a saved plan: {error}", code="plan-file") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise SyncengineError(f"{path} is not a saved plan of this version ({FORMAT})", code="plan-file")
    execution = document.get("execution")
    if execution is None:
        raise SyncengineError(f"{path} was printed, not saved: use `plan --out FILE`", code="plan-file")
    if document.get("digest") != _digest(execution):
        raise SyncengineError(f"{path} was changed after it was saved: plan again", code="plan-file")
    try:
        return _ADAPTER.validate_python(execution)
    except ValidationError:
        raise SyncengineError(f"{path} was saved by another version of syncengine", code="plan-file") from None


def _digest(execution: object) -> str:
    return hashlib.sha256(orjson.dumps(execution, option=orjson.OPT_SORT_KEYS)).hexdigest()

"""Hostile manifests are refused with a diagnostic, in a process that is killed if it takes long."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(12)
)
WIDE_BOMB = "x: &x [" + "a," * 5000 + "]\n" + "y:\n" + "  - *x\n" * 5000
UNKNOWN_FIELDS = "tags:\n  - name: abc\n" + "".join(f"    f{n}: x\n" for n in range(10_000))
UNKNOWN_CATEGORIES = "tags:\n" + "".join(f"  - {{name: abc{n}, category: c{n}}}\n" for n in range(10_000))

HOSTILE: dict[str, tuple[bytes, str]] = {
    "alias bomb": (BOMB.encode(), "too-many-aliases"),
    "wide alias bomb": (WIDE_BOMB.encode(), "too-many-aliases"),
    "20,000 lists": (b"[" * 20_000, "too-deep"),
    "20,000 closed lists": (b"tags: " + b"[" * 20_000 + b"]" * 20_000, "too-deep"),
    "20,000 lists on lines of their own": (b"[\n" * 20_000, "too-deep"),
    "20,000 mappings": (b"{a: " * 20_000, "too-deep"),
    "20,000 block lists": (b"- " * 20_000, "too-deep"),
    "20,000 question marks": (b"? " * 20_000, "too-deep"),
    "indented ever deeper": (b"".join(b" " * n + b"a:\n" for n in range(2000)), "too-deep"),
    "20,000 lists in JSON": (b'{"tags": ' + b"[" * 20_000, "too-deep"),
    "binary": (bytes(range(256)) * 1000, "not-utf8"),
    "zeros": (bytes(100_000), "control-character"),
    "objects": (b"tags: !!python/object/apply:os.system ['exit 9']\n", "unsupported-tag"),
    "a long key": (b"tags:\n  - " + b"k" * 5_000_000 + b": x\n", "yaml-syntax"),
    "10,000 unknown fields": (UNKNOWN_FIELDS.encode(), "unknown-field"),
    "10,000 unknown categories": (UNKNOWN_CATEGORIES.encode(), "unknown-category"),
}  # fmt: skip

SCRIPT = """
import gc
import sys
from pathlib import Path
from syncengine.manifest.desired import ManifestSet, desired
from syncengine.errors import Problems
from syncengine.manifest.desired import read_all
from syncengine.manifest.files import find
gc.disable()  # as the program does
try:
    files = find([Path(sys.argv[1])], Path(sys.argv[1]).parent).files
    desired(ManifestSet(files), read_all(files))
except Problems as refused:
    print(refused.found[0].code)
"""


@pytest.mark.parametrize(("data", "code"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_input_is_refused_cleanly(data: bytes, code: str, tmp_path: Path) -> None:
    """There is one diagnostic, no traceback and no crash, within seconds."""
    path = tmp_path / "m.yaml"
    path.write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path)], capture_output=True, text=True, timeout=20, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{code}\n", "")


def test_a_file_that_is_too_large_is_not_parsed(tmp_path: Path) -> None:
    """A file of more than 64 MB is refused."""
    path = tmp_path / "m.yaml"
    with path.open("wb") as file:
        file.truncate(65 * 1024 * 1024)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path)], capture_output=True, text=True, timeout=20, check=False
    )
    assert done.stdout == "file-too-large\n"

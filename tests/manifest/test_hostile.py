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
for path in map(Path, sys.argv[1:]):
    try:
        files = find([path], path.parent).files
        desired(ManifestSet(files), read_all(files))
    except Problems as refused:
        print(path.stem, refused.found[0].code, flush=True)
"""


def test_hostile_input_is_refused_cleanly(tmp_path: Path) -> None:
    """There is one diagnostic for each file, no traceback and no crash, within seconds."""
    for name, (data, _) in HOSTILE.items():
        (tmp_path / f"{name}.yaml").write_bytes(data)
    with (tmp_path / "more than 64 MB.yaml").open("wb") as file:
        file.truncate(65 * 1024 * 1024)
    words = [sys.executable, "-c", SCRIPT, *(str(path) for path in tmp_path.iterdir())]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    codes = {name: code for name, (_, code) in HOSTILE.items()} | {"more than 64 MB": "file-too-large"}
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == sorted(f"{name} {code}" for name, code in codes.items())

"""An interrupt while the manifest cache is written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import signal, sys, time
from pathlib import Path

from syncengine.manifest.cache import ManifestCache
from syncengine.manifest.declarations import DefaultValues
from syncengine.manifest.reading import ReadFile, Reading

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
cache = ManifestCache(Path(sys.argv[1]), DefaultValues())
cache.keep([ReadFile(Reading("x" * 300_000), str(n)) for n in range(200)])
signal.setitimer(signal.ITIMER_REAL, float(sys.argv[2]))
try:
    cache.digests()  # which waits for what is written
    signal.setitimer(signal.ITIMER_REAL, 0)
except KeyboardInterrupt:
    pass
cache.close()
print("closed", flush=True)
time.sleep(0.5)  # what is written goes on meanwhile
"""


@pytest.mark.parametrize("seconds", [0.01, 0.03, 0.06, 0.1, 0.15])
def test_closing_an_interrupted_cache_does_not_crash(tmp_path: Path, seconds: float) -> None:
    """`close` waits for the current SQL statement, even if waiting for the writer was interrupted."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), str(seconds)], capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"closed\n", b"")

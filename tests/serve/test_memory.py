"""Memory of a process with many threads, counted by the C library itself."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

THREADS = """
import ctypes, sys, threading
from syncengine.serve.memory import share_arena
if "shared" in sys.argv:
    share_arena()
begin = threading.Barrier(6)
def work():
    begin.wait()
    data = [bytes(1000) for _ in range(1000)]
    begin.wait()
threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
stream = ctypes.c_void_p(libc.fopen(b"/dev/stdout", b"w"))
libc.malloc_info(0, stream)
libc.fclose(stream)
"""


def arenas(*arguments: str) -> int:
    done = subprocess.run([sys.executable, "-c", THREADS, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.count("<heap nr=")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="an arena for each thread is a habit of glibc")
def test_threads_share_one_arena() -> None:
    """Or each would keep the memory of the largest configuration that it loaded."""
    assert arenas() > 1
    assert arenas("shared") == 1

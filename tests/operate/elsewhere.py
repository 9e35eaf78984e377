"""The program as if on another machine: `python -m tests.operate.elsewhere HOST SECONDS ARGUMENTS...`.

The process has a host name of its own (a UTS namespace), and leases of the state and of the inbox last SECONDS, or
their usual time for 0. It exits with 96 where the system has no such namespaces.
"""

import ctypes
import runpy
import socket
import sys

from syncengine.project.schema import ServiceSection
from syncengine.state.inbox import Inbox

NEW_NAMES, NEW_USER = 0x04000000, 0x10000000
NOT_HERE = 96


def main() -> None:
    host, seconds, *arguments = sys.argv[1:]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_NAMES) and libc.unshare(NEW_NAMES | NEW_USER):
        sys.exit(NOT_HERE)
    socket.sethostname(host)
    if float(seconds):
        ServiceSection.lease = property(lambda self: float(seconds))  # type: ignore[assignment,method-assign]
        defaults = Inbox.lease.__kwdefaults__
        assert defaults is not None
        defaults["seconds"] = float(seconds)
    sys.argv = ["syncengine", *arguments]
    runpy.run_module("syncengine", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

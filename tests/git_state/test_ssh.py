"""A state over ssh to a local server: keys, no prompts, and the error of a refused login."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.git import git
from tests.support.ports import unused_port
from tests.support.waiting import eventually

from .conftest import Clone, fails, rests, succeeds
from .places import REF

SSHD = shutil.which("sshd") or ("/usr/sbin/sshd" if Path("/usr/sbin/sshd").exists() else None)

pytestmark = [
    pytest.mark.skipif(SSHD is None or shutil.which("ssh") is None, reason="sshd or ssh is not installed"),
    pytest.mark.slow,
]


@dataclass(frozen=True)
class SshServer:
    """A server on loopback that accepts one key; `command` is the ssh command that uses it."""

    port: int
    command: str

    def url(self, repository: Path) -> str:
        return f"git+ref://ssh://{getpass.getuser()}@127.0.0.1:{self.port}{repository}/{REF}"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SshServer]:
    folder = tmp_path / "ssh"
    folder.mkdir(mode=0o700)
    for name in ("host", "user"):
        words: list[str | Path] = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name]
        subprocess.run(words, check=True)
    (folder / "authorized").write_text((folder / "user.pub").read_text())
    port = unused_port()
    settings = {
        "ListenAddress": "127.0.0.1",
        "HostKey": folder / "host",
        "AuthorizedKeysFile": folder / "authorized",
        "PidFile": "none",
        "StrictModes": "no",
        "UsePAM": "no",
        "PasswordAuthentication": "no",
        "PermitRootLogin": "prohibit-password",
    }
    (folder / "config").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    server: list[str | Path] = [SSHD, "-D", "-e", "-p", str(port), "-f", folder / "config"]
    with (folder / "log").open("wb") as log, subprocess.Popen(server, stderr=log) as process:
        eventually(lambda: _answers(port), (folder / "log").read_text)
        options = f"-i {folder}/user -o IdentitiesOnly=yes -o UserKnownHostsFile={folder}/known -F none"
        yield SshServer(port, f"ssh -o BatchMode=yes -o StrictHostKeyChecking=accept-new {options}")
        process.terminate()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_runners_share_a_state_over_ssh(clone: Clone, server: SshServer, remote: Path) -> None:
    """Errors name the host without the user. A refused login is an error without a prompt and without a new state."""
    first, second = clone("one"), clone("two")
    for project in (first, second):
        project.settings(f"state: {server.url(remote)}")
        project.environ["GIT_SSH_COMMAND"] = server.command
    fails(first, "plan", says="error[state-login]", GIT_SSH_COMMAND=server.command.replace("/user ", "/host "))
    fails(first, "plan", code=4, says=f"ssh://127.0.0.1:{server.port}")
    succeeds(first, "apply", "-y", "--new-state")
    rests(second)
    assert git(remote, "rev-list", "--count", REF) == "4"

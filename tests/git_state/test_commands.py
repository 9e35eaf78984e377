"""Commands with a state in Git: ephemeral runners, a missing state, a rewound state, and versions."""

import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from syncengine.resource import Body, Key, Recorded
from syncengine.state import working_copy
from syncengine.state.git_repository import Remote
from tests.cli.program import Project, tag
from tests.cli.service import Service
from tests.support.git import bare, commit_all, git
from tests.support.quiet import unused_port
from tests.support.waiting import eventually

from .conftest import ONE, TWO, Clone, applies, fails, offered, rests, succeeds, versions
from .places import REF, place_of, url
from .test_kills import opened

pytestmark = pytest.mark.slow


def test_runners_without_a_memory_share_one_state(begun: Project, clone: Clone, service: Service) -> None:
    second, third = clone("two"), clone("three")
    rests(second)
    applies(second, **TWO)
    third.wants(**TWO)
    rests(third)
    assert service.tags() == ["ACME-1", "ACME-2"]


def test_no_rows_stay_in_files_once_a_command_has_ended(begun: Project) -> None:
    """After a command, rows remain locally only as Git objects, which `state erase` removes."""
    for words in (("plan",), ("state", "list"), ("apply", "-y")):
        succeeds(begun, *words)
        kept = next(begun.folder.glob(".syncengine/git-state/*"))
        assert {file.name for file in kept.iterdir()} == {"repository.git", "seen.json"}


# --- a missing, deleted or rewound state

USES_A_STATE = (
    *(("plan",), ("apply", "-y"), ("state", "list"), ("state", "show", "tag/A"), ("state", "history")),
    *(("state", "export"), ("state", "lock"), ("state", "versions"), ("state", "forget", "-y", "tag/A")),
    *(("state", "unlock", "x"), ("state", "rebind", "-y")),
)


def test_a_missing_state_is_refused(clone: Clone, remote: Path) -> None:
    """It may have been deleted."""
    project = clone("one")
    for words in USES_A_STATE:
        fails(project, *words, code=4, says="error[new-state]")
    assert git(remote, "for-each-ref") == ""


def test_new_state_begins_a_state(clone: Clone) -> None:
    project = clone("one")
    assert "1 to create" in succeeds(project, "plan", "--new-state").out
    succeeds(project, "apply", "-y", "--new-state")
    exported = succeeds(project, "state", "export").out
    for number, words in enumerate((["state", "import", "-y", "list"], ["adopt", "list.yaml"])):
        other = clone(f"other{number}")
        other.settings(f"state: {url(bare(other.folder / 'remote.git'))}")
        (other.folder / "list").write_text(exported)
        (other.folder / "list.yaml").write_text("tags: [{name: A}]\n")
        fails(other, *words, code=4, says="new-state")
        succeeds(other, *words, "--new-state")


def test_an_unreachable_repository_is_an_error_and_no_empty_state(begun: Project, remote: Path) -> None:
    """The local copy is not used instead."""
    moved = remote.rename(remote.with_name("moved.git"))
    for words in (("plan",), ("apply", "-y"), ("state", "list")):
        done = fails(begun, *words, says="error[state-unreachable]")
        assert "remote.git/refs/syncengine/test" in done.err
    moved.rename(remote)
    succeeds(begun, "plan")


def test_a_deleted_ref_is_restored(begun: Project, remote: Path) -> None:
    git(remote, "update-ref", "-d", REF)
    done = fails(begun, "plan", code=4, says="this project saw version")
    succeeds(begun, "state", "restore", "-y", offered(done))
    assert "recorded by `state restore`" in begun.run("plan").out
    applies(begun, **ONE)


@pytest.fixture
def rewound(begun: Project, remote: Path) -> Project:
    """A project that applied twice, after which the ref was rewound to the first apply."""
    before = git(remote, "rev-parse", REF)
    applies(begun, **TWO)
    shutil.copytree(begun.folder, begun.folder.with_name("colleague"))
    git(remote, "update-ref", REF, before)
    return begun


def test_a_rewound_state_is_refused(rewound: Project, remote: Path) -> None:
    before = git(remote, "rev-parse", REF)
    for words in (("plan",), ("apply", "-y"), ("state", "list"), ("state", "lock")):
        fails(rewound, *words, code=4, says="error[state-rewound]")
    assert git(remote, "rev-parse", REF) == before


@pytest.mark.parametrize("back_to", ["lost", "present"])
def test_a_restored_version_is_doubtful_and_can_be_applied(rewound: Project, back_to: str, service: Service) -> None:
    """The lost version or the present one; other clones continue from it."""
    lost, present = offered(rewound.run("plan")), versions(rewound)[0]["id"]
    done = succeeds(rewound, "state", "restore", "-y", lost if back_to == "lost" else present)
    assert "all rows are doubtful" in done.out
    doubtful = {address: row["doubtful"] for address, row in rewound.rows().items()}
    assert doubtful == dict.fromkeys(["tag/ACME-1", "tag/ACME-2"] if back_to == "lost" else ["tag/ACME-1"], True)
    applies(rewound, **TWO)
    assert service.tags() == ["ACME-1", "ACME-2"]
    colleague = Project(rewound.folder.with_name("colleague"), rewound.url)
    colleague.settings(f"state: {url(rewound.folder.with_name('remote.git'))}")
    rests(colleague)


def test_a_rewind_within_one_version_is_found_by_the_epoch_of_its_lock(begun: Project, remote: Path) -> None:
    before = git(remote, "rev-parse", REF)
    succeeds(begun, "state", "lock")
    git(remote, "update-ref", REF, before)
    fails(begun, "plan", code=4, says="state-rewound")


def test_a_lost_state_is_rebuilt_from_what_git_declared(begun: Project, remote: Path) -> None:
    (begun.folder / ".gitignore").write_text(".syncengine/\n")
    git(begun.folder, "init", "--quiet")
    commit_all(begun.folder)
    git(remote, "update-ref", "-d", REF)
    words = ("state", "rebuild", "--from-git", "HEAD", "-y")
    fails(begun, *words, code=4, says="state rebuild")
    succeeds(begun, *words, "--new-state")
    assert [row["doubtful"] for row in begun.rows().values()] == [True]
    applies(begun, **ONE)
    fails(begun, *words, "--new-state", says="state-has-rows")


# --- versions


def contents(repository: Path, *words: str) -> str:
    return "\n".join(git(repository, "cat-file", "-p", line.split()[0]) for line in git(repository, *words).split("\n"))


@pytest.mark.parametrize("words", [("erase", "tag/Jane Doe"), ("prune", "--before", "2000-01-01")], ids=" ".join)
def test_erase_and_prune_remove_earlier_versions(clone: Clone, remote: Path, words: tuple[str, ...]) -> None:
    """These hold the removed data, also locally."""
    project, colleague = clone("one"), clone("two")
    project.wants(tags=[tag("Jane Doe", description="her matter"), tag("ACME-1", description="one")])
    succeeds(project, "apply", "-y", "--new-state")
    applies(project, **ONE)
    rests(colleague)
    assert "versions" in succeeds(project, "state", *words, "-y").out
    assert len(versions(project)) == 1
    if words[0] == "erase":
        published = contents(remote, "rev-list", "--objects", REF)
        assert [text for text in ("Jane Doe", "her matter") if text in published] == []
        kept = project.folder / ".syncengine"
        assert not [file for file in kept.rglob("*") if file.is_file() and b"Jane Doe" in file.read_bytes()]
        own = next(kept.glob("git-state/*/repository.git"))
        assert "her matter" not in contents(own, "cat-file", "--batch-all-objects", "--batch-check")
    for each in (project, colleague):
        applies(each, **ONE)


def test_versions_are_listed_and_an_earlier_one_restored(begun: Project, remote: Path) -> None:
    """It is published as a new version, and the history of later runs stays."""
    applies(begun, **TWO)
    listed = versions(begun)
    assert [(each["rows"], each["command"]) for each in listed] == [
        *((2, "apply"), (2, "apply (begun)")),
        *((1, "apply"), (1, "apply (begun)")),
        (0, "apply"),
    ]
    succeeds(begun, "state", "restore", "-y", listed[2]["id"][:9])
    assert list(begun.rows()) == ["tag/ACME-1"]
    history = begun.run("state", "history", "--format", "json").document["runs"]
    assert [run["command"] for run in history] == ["state restore", "apply", "apply"]
    assert "two" in begun.run("state", "history", "tag/ACME-1").out, "later runs stay in the history"
    assert git(remote, "rev-list", "--count", REF) == "7"


def test_anything_but_a_version_is_refused(begun: Project) -> None:
    """`state restore` accepts only the beginning of a version's id; a state in a database has no versions."""
    for version in ("0123456789", "HEAD", "--all", "", "refs/syncengine/test", "x" * 50):
        assert begun.run("state", "restore", "-y", "--", version).code in (1, 64), version
    assert begun.rows()["tag/ACME-1"]["doubtful"] is False
    begun.settings()
    for words in (("versions",), ("restore", "-y", "0123456789")):
        fails(begun, "state", *words, says="no-versions")


def test_every_state_command_works_on_a_state_in_git(begun: Project, clone: Clone) -> None:
    other = clone("two")
    locked = begun.run("state", "lock", "--reason", "moving").out
    other.wants(**TWO)
    fails(other, "apply", "-y", "--lock-timeout", "0s", code=6, says="moving")
    succeeds(other, "state", "unlock", locked.split("unlock ")[1].strip())
    succeeds(other, "apply", "-y")
    (begun.folder / "exported").write_text(begun.run("state", "export").out)
    succeeds(begun, "state", "forget", "-y", "tag/ACME-2")
    assert "ACME-2" not in other.run("state", "list").out
    succeeds(begun, "state", "import", "-y", "exported")
    assert "doubtful" in other.run("state", "list").out
    outcomes = [run["outcome"] for run in other.run("state", "history", "--format", "json").document["runs"]]
    assert "refused" in outcomes


def test_posted_time_needs_a_database(begun: Project) -> None:
    for words in (("time", "inbox"), ("connector", "register")):
        fails(begun, *words, says="state-without-inbox")
    begun.run("time", "list")


def test_a_refused_run_is_history_also_while_another_holds_the_lock(
    begun: Project, clone: Clone, remote: Path, tmp_path: Path
) -> None:
    state, holder = opened(place_of(remote, tmp_path / "holder"), "elsewhere")
    state.lock(holder, wait=0, request_timeout=1)
    begun.wants(**TWO)
    fails(begun, "apply", "-y", "--lock-timeout", "0s", code=6, says="elsewhere")
    state.put([Recorded(Key.parse("tag/HELD"), Body({}, (), {}))])
    with state:
        assert state.current_lock() is not None
    other = clone("two")
    assert "HELD" in other.run("state", "list").out
    run = other.run("state", "history", "--format", "json").document["runs"][0]
    assert (run["outcome"], run["exitCode"]) == ("refused", 6)


def test_more_rows_than_a_state_in_git_holds_are_refused(
    begun: Project, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is sent; the error suggests PostgreSQL."""
    before, asked = begun.rows(), len(service.asked())
    begun.wants(tags=[tag(f"ACME-{number}") for number in range(3)])
    monkeypatch.setattr(working_copy, "MOST_ROWS", 2)
    done = fails(begun, "apply", "-y", "--no-delete", says="error[state-too-large]")
    assert "to PostgreSQL" in done.err + done.out
    assert set(service.asked()[asked:]) <= {"teamInfo"}
    assert (begun.rows(), begun.is_locked()) == (before, False)
    applies(begun, **TWO)


# --- the place of the state

INVALID_PLACES = (
    "git+ref://ext::sh -c touch% pwned/refs/syncengine/x",
    "git+ref://--upload-pack=touch pwned/refs/syncengine/x",
    "git+ref://ssh://-oProxyCommand=touch/x/refs/syncengine/x",
    "git+ref://file:///tmp/x/refs/heads/main",
    "git+ref://file:///tmp/x/refs/syncengine/../heads/main",
    "git+ref://file:///tmp/x/refs/syncengine/",
    "git+ref://http://example.com/x/refs/syncengine/x",
    "git+ref://-x/refs/syncengine/x",
    "git+ref://http://localhost:s3cr3t@example.com/x/refs/syncengine/x",
    "git+ref://http://example.com?@localhost/x/refs/syncengine/x",
    "git+ref://me:s3cr3t@example.com/x/refs/syncengine/x",
    "git+ref://https://me:s3/cr3t@example.com/x/refs/syncengine/x",
)


def test_an_invalid_place_is_refused(clone: Clone) -> None:
    """Before Git is called, so that it is never an option or a command."""
    project = clone("one")
    for place in INVALID_PLACES:
        project.settings(f"state: '{place}'")
        assert project.run("plan").code == 8, place
        project.settings("state: {env: PLACE}")
        done = fails(project, "plan", code=8, says="error[state-url]", PLACE=place)
        assert "cr3t" not in done.err
    assert not list(project.folder.rglob("pwned"))


def test_a_password_is_neither_accepted_in_the_file_nor_shown(clone: Clone) -> None:
    """A user's name is no password. A repository of this machine may ask for one over http, too."""
    project = clone("one")
    secret = "git+ref://https://me:s3cr3t@127.0.0.1:9/x.git/refs/syncengine/prod"
    project.settings(f"state: {secret}")
    fails(project, "plan", code=8, says="error[secret-in-file]")
    project.settings("state: git+ref://ssh://git@127.0.0.1:9/x.git/refs/syncengine/prod")
    assert project.run("plan").code == 1
    project.settings("state: {env: PLACE}")
    for words in (("plan",), ("apply", "-y", "--format", "json"), ("state", "list")):
        done = fails(project, *words, says="state-unreachable", PLACE=secret)
        assert "cr3t" not in done.out + done.err
    for host in ("http://me:s3cr3t@127.0.0.1:9", "https://me:1/s3cr3t@127.0.0.1:9", "http://[::1]:9"):
        place = f"git+ref://{host}/x.git/refs/syncengine/x"
        assert "cr3t" not in fails(project, "plan", says="error[state-unreachable]", PLACE=place).err


def test_a_folder_is_named_as_it_is(clone: Clone, tmp_path: Path) -> None:
    project = clone("one")
    for form in ("git+ref://{}/refs/syncengine/x", "git+ref://file://{}/refs/syncengine/x"):
        project.settings(f"state: {form.format(tmp_path / 'me@work' / 'x.git')}")
        assert f"{tmp_path}/me@work/x.git" in project.run("plan").err


def with_origin(clone: Clone, remote: str | Path) -> Project:
    """A project whose folder is a repository with this remote."""
    project = clone("one")
    git(project.folder, "init", "--quiet")
    git(project.folder, "remote", "add", "origin", str(remote))
    return project


def test_the_name_of_a_remote_is_that_of_the_projects_repository(clone: Clone, remote: Path) -> None:
    """A path is relative to the project."""
    project = with_origin(clone, remote)
    project.settings("state: git+ref://upstream/refs/syncengine/test")
    fails(project, "apply", "-y", "--new-state", says="No such remote 'upstream'")
    project.settings("state: git+ref://origin/refs/syncengine/test")
    succeeds(project, "apply", "-y", "--new-state")
    project.settings("state: git+ref://../remote.git/refs/syncengine/test")
    assert "ACME-1" in project.run("state", "list").out
    assert git(project.folder, "for-each-ref") == ""


def test_a_remote_by_a_relative_path_is_beside_the_repository(clone: Clone, remote: Path) -> None:
    """Also for a project in a subfolder."""
    project = with_origin(clone, "../remote.git")
    for each, name in ((project, "outer"), (Project(project.folder / "inner", project.url), "inner")):
        each.wants(**ONE)
        each.settings(f"state: git+ref://origin/refs/syncengine/{name}")
        succeeds(each, "apply", "-y", "--new-state")
    refs = git(remote, "for-each-ref", "--format=%(refname)").split()
    assert refs == ["refs/syncengine/inner", "refs/syncengine/outer"]


def test_settings_that_git_reads_by_itself_are_not_passed_on(
    clone: Clone, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only those of the project's own repository are; hosts would refuse a duplicated header."""
    project = with_origin(clone, remote)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(project.folder / "gitconfig"))
    git(project.folder, "config", "--file", "gitconfig", "http.extraHeader", "X: user")
    git(project.folder, "config", "http.https://git.example.com/.extraHeader", "X: job")
    found = Remote.of_name("origin", project.folder)
    assert found.settings == (("http.https://git.example.com/.extraheader", "X: job"),)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can change a file's owner")
def test_a_repository_of_another_user_is_not_trusted_but_its_remotes_are_found(clone: Clone, remote: Path) -> None:
    """The error has Git's message and the cure. Of another user's checkout no setting is used but its remotes."""
    project = with_origin(clone, remote)
    git(project.folder, "config", "core.sshCommand", "false")
    project.settings("state: git+ref://origin/refs/syncengine/test")
    for path in (project.folder, project.folder / ".git"):
        os.chown(path, 12345, 12345)
    succeeds(project, "apply", "-y", "--new-state")
    assert Remote.of_name("origin", project.folder).settings == ()
    os.chown(remote, 12345, 12345)
    done = fails(project, "plan", says="dubious ownership")
    assert f"run `git config --global --add safe.directory {remote}`" in done.err


def test_the_programs_of_the_user_are_used(clone: Clone, tmp_path: Path) -> None:
    """The ssh command of Git's settings, and Git of the PATH, without which a state in Git is an error."""
    project = clone("one")
    (tmp_path / "gitconfig").write_text(f"[core]\n sshCommand = touch {tmp_path}/called && false\n")
    project.settings("state: git+ref://git@127.0.0.1:x.git/refs/syncengine/prod")
    fails(project, "plan", says="", GIT_CONFIG_GLOBAL=str(tmp_path / "gitconfig"))
    assert (tmp_path / "called").exists()
    for place in (url(tmp_path / "remote.git"), "git+ref://origin/refs/syncengine/test"):
        project.settings(f"state: {place}")
        fails(project, "plan", says="error[state-driver]", PATH=str(tmp_path))


SSHD = shutil.which("sshd") or ("/usr/sbin/sshd" if Path("/usr/sbin/sshd").exists() else None)


@dataclass(frozen=True)
class SshServer:
    """A server on loopback that accepts one key; `command` is the ssh command that uses it."""

    port: int
    command: str

    def url(self, repository: Path) -> str:
        return f"git+ref://ssh://{getpass.getuser()}@127.0.0.1:{self.port}{repository}/{REF}"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SshServer]:
    if SSHD is None or shutil.which("ssh") is None:
        pytest.skip("sshd or ssh is not installed")
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

"""Commands with a state in Git: ephemeral runners, a missing state, a rewound state, and versions."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from syncengine.resource import Body, Key, Recorded
from syncengine.state.git_repository import Remote
from tests.cli.program import Ended, Project, tag
from tests.cli.service import Service

from .conftest import Clone
from .places import REF, bare, git, place_of, url
from .test_kills import opened

pytestmark = pytest.mark.slow

ONE = {"tags": [tag("ACME-1", description="one")]}
TWO = {"tags": [tag("ACME-1", description="two"), tag("ACME-2")]}


def begun(project: Project, **sections: list[dict[str, object]]) -> Project:
    project.wants(**(sections or ONE))
    done = project.run("apply", "-y", "--new-state")
    assert done.code == 0, done.err
    return project


def applied(project: Project) -> Ended:
    return project.run("apply", "-y", "--format", "json")


def test_runners_without_a_memory_share_one_state(clone: Clone, service: Service) -> None:
    """Runners that have only the project continue from the state that the previous one published."""
    begun(clone("one"))
    second = clone("two")
    second.wants(**ONE)
    assert second.run("plan", "--detailed-exitcode").code == 0
    second.wants(**TWO)
    assert applied(second).code == 0
    third = clone("three")
    third.wants(**TWO)
    assert third.run("plan", "--detailed-exitcode").code == 0
    assert service.tags() == ["ACME-1", "ACME-2"]


def test_no_rows_stay_in_files_once_a_command_has_ended(clone: Clone) -> None:
    """After a command, rows remain locally only as Git objects, which `state erase` removes."""
    project = begun(clone("one"))
    for words in (("plan",), ("state", "list"), ("apply", "-y")):
        assert project.run(*words).code == 0
        kept = next(project.folder.glob(".syncengine/git-state/*"))
        assert {file.name for file in kept.iterdir()} == {"repository.git", "seen.json"}


COMMANDS = (
    ("plan",),
    ("apply", "-y"),
    *(
        ("state", *words)
        for words in (("list",), ("show", "tag/A"), ("history",), ("export",), ("lock",), ("versions",))
    ),
    *(("state", *words) for words in (("forget", "-y", "tag/A"), ("unlock", "x"), ("rebind", "-y"))),
)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_missing_state_is_refused(clone: Clone, words: tuple[str, ...], remote: Path) -> None:
    """Every command exits with 4 if the state is missing, since it may have been deleted."""
    project = clone("one")
    project.wants(**ONE)
    done = project.run(*words)
    assert (done.code, "error[new-state]" in done.err) == (4, True), done.err
    assert git(remote, "for-each-ref") == ""


def test_new_state_begins_a_state(clone: Clone) -> None:
    """With --new-state, `plan`, `apply`, `state import` and `adopt` begin a new state."""
    project = clone("one")
    project.wants(**ONE)
    assert "1 to create" in project.run("plan", "--new-state").out
    exported = begun(project).run("state", "export").out
    for number, words in enumerate((["state", "import", "-y", "list"], ["adopt", "list.yaml"])):
        other = clone(f"other{number}")
        other.settings(f"state: {url(bare(other.folder / 'remote.git'))}")
        (other.folder / "list").write_text(exported)
        (other.folder / "list.yaml").write_text("tags: [{name: A}]\n")
        assert other.run(*words).code == 4
        done = other.run(*words, "--new-state")
        assert done.code == 0, done.err


def test_an_unreachable_repository_is_an_error_and_no_empty_state(clone: Clone, remote: Path) -> None:
    """An unreachable repository is an error that names it; the local copy is not used instead."""
    project = begun(clone("one"))
    moved = remote.rename(remote.with_name("moved.git"))
    for words in (("plan",), ("apply", "-y"), ("state", "list")):
        done = project.run(*words)
        assert (done.code, "remote.git/refs/syncengine/test" in done.err) == (1, True), done.err
        assert "state-unreachable" in done.err
    moved.rename(remote)
    assert project.run("plan").code == 0


def test_a_deleted_ref_is_restored(clone: Clone, remote: Path) -> None:
    project = begun(clone("one"))
    git(remote, "update-ref", "-d", REF)
    done = project.run("plan")
    assert (done.code, "this project saw version" in done.err) == (4, True), done.err
    version = done.err.split("`syncengine state restore ")[1].split("`")[0]
    assert project.run("state", "restore", "-y", version).code == 0
    assert project.rows()["tag/ACME-1"]["doubtful"] is True
    assert "recorded by `state restore`" in project.run("plan").out
    assert applied(project).code == 0
    assert project.run("plan", "--detailed-exitcode").code == 0


@pytest.fixture
def rewound(clone: Clone, remote: Path) -> Project:
    """A project that applied twice, after which the ref was rewound to the first apply."""
    project = begun(clone("one"))
    before = git(remote, "rev-parse", REF)
    project.wants(**TWO)
    assert applied(project).code == 0
    shutil.copytree(project.folder, project.folder.with_name("colleague"))
    git(remote, "update-ref", REF, before)
    return project


@pytest.mark.parametrize("words", [("plan",), ("apply", "-y"), ("state", "list"), ("state", "lock")], ids=" ".join)
def test_a_rewound_state_is_refused(rewound: Project, words: tuple[str, ...], remote: Path) -> None:
    """Commands on a rewound state exit with 4 and write nothing."""
    before = git(remote, "rev-parse", REF)
    done = rewound.run(*words)
    assert (done.code, "error[state-rewound]" in done.err) == (4, True), done.err
    assert git(remote, "rev-parse", REF) == before


@pytest.mark.parametrize("back_to", ["lost", "present"])
def test_a_restored_version_is_doubtful_and_can_be_applied(rewound: Project, back_to: str, service: Service) -> None:
    """After `state restore` of the lost or the present version, all rows are doubtful, and other clones continue."""
    lost = rewound.run("plan").err.split("`syncengine state restore ")[1].split("`")[0]
    present = rewound.run("state", "versions", "--format", "json").document["versions"][0]["id"]
    done = rewound.run("state", "restore", "-y", lost if back_to == "lost" else present)
    assert (done.code, "all rows are doubtful" in done.out) == (0, True), done.err
    rows = rewound.rows()
    assert set(rows) == ({"tag/ACME-1", "tag/ACME-2"} if back_to == "lost" else {"tag/ACME-1"})
    assert all(row["doubtful"] for row in rows.values())
    assert applied(rewound).code == 0
    assert service.tags() == ["ACME-1", "ACME-2"]
    colleague = Project(rewound.folder.with_name("colleague"), rewound.url)
    colleague.settings(f"state: {url(rewound.folder.with_name('remote.git'))}")
    assert colleague.run("plan", "--detailed-exitcode").code == 0


def test_a_rewind_within_one_version_is_found_by_the_epoch_of_its_lock(clone: Clone, remote: Path) -> None:
    """A state that was rewound to before a lock was taken is found to be rewound."""
    project = begun(clone("one"))
    before = git(remote, "rev-parse", REF)
    assert project.run("state", "lock").code == 0
    git(remote, "update-ref", REF, before)
    assert "state-rewound" in project.run("plan").err


def test_a_lost_state_is_rebuilt_from_what_git_declared(clone: Clone, remote: Path, service: Service) -> None:
    """`state rebuild --from-git --new-state` recreates a lost state with doubtful rows, which an apply confirms."""
    project = begun(clone("one"))
    committed(project)
    git(remote, "update-ref", "-d", REF)
    words = ("state", "rebuild", "--from-git", "HEAD", "-y")
    refused = project.run(*words)
    assert (refused.code, "state rebuild" in refused.err) == (4, True), refused.err
    done = project.run(*words, "--new-state")
    assert done.code == 0, done.err
    assert [row["doubtful"] for row in project.rows().values()] == [True]
    assert applied(project).code == 0
    assert service.tags() == ["ACME-1"]
    assert project.run("plan", "--detailed-exitcode").code == 0
    assert "state-has-rows" in project.run(*words, "--new-state").err


def committed(project: Project) -> None:
    """Make a repository whose only commit has the project's present manifests."""
    (project.folder / ".gitignore").write_text(".syncengine/\n")
    git(project.folder, "init", "--quiet")
    git(project.folder, "add", "--all")
    git(project.folder, "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "--quiet", "-m", "one")


def contents(repository: Path, *words: str) -> str:
    """Return the contents of the objects that a Git command lists."""
    return "\n".join(git(repository, "cat-file", "-p", line.split()[0]) for line in git(repository, *words).split("\n"))


@pytest.mark.parametrize("words", [("erase", "tag/Jane Doe"), ("prune", "--before", "2000-01-01")], ids=" ".join)
def test_erase_and_prune_remove_earlier_versions(clone: Clone, remote: Path, words: tuple[str, ...]) -> None:
    """`state erase` and `state prune` remove earlier versions, since these hold the removed data, also locally."""
    project = begun(clone("one"), tags=[tag("Jane Doe", description="her matter"), tag("ACME-1")])
    colleague = clone("two")
    for each in (project, colleague):
        each.wants(tags=[tag("ACME-1")])
    assert project.apply().code == 0
    assert colleague.run("plan", "--detailed-exitcode").code == 0
    done = project.run("state", *words, "-y")
    assert (done.code, "versions" in done.out) == (0, True), done.err
    assert len(project.run("state", "versions", "--format", "json").document["versions"]) == 1
    if words[0] == "erase":
        assert not [
            text for text in ("Jane Doe", "her matter") if text in contents(remote, "rev-list", "--objects", REF)
        ]
        kept = project.folder / ".syncengine"
        assert not [file for file in kept.rglob("*") if file.is_file() and b"Jane Doe" in file.read_bytes()]
        own = next(kept.glob("git-state/*/repository.git"))
        assert "her matter" not in contents(own, "cat-file", "--batch-all-objects", "--batch-check")
    for each in (project, colleague):
        assert each.run("plan", "--detailed-exitcode").code == 0
        assert applied(each).code == 0


def test_versions_are_listed_and_an_earlier_one_restored(clone: Clone, remote: Path) -> None:
    """`state restore` publishes an earlier version as a new one and keeps the history of later runs."""
    project = begun(clone("one"))
    project.wants(**TWO)
    assert applied(project).code == 0
    versions = project.run("state", "versions", "--format", "json").document
    assert versions["format"] == "syncengine.state-versions/v1"
    assert [(each["rows"], each["command"]) for each in versions["versions"]] == [
        (2, "apply"),
        (2, "apply (begun)"),
        (1, "apply"),
        (1, "apply (begun)"),
        (0, "apply"),
    ]
    wanted = versions["versions"][2]["id"]
    assert project.run("state", "restore", "-y", wanted[:9]).code == 0
    assert list(project.rows()) == ["tag/ACME-1"]
    history = project.run("state", "history", "--format", "json").document["runs"]
    assert [run["command"] for run in history] == ["state restore", "apply", "apply"]
    assert "two" in project.run("state", "history", "tag/ACME-1").out, "later runs stay in the history"
    assert git(remote, "rev-list", "--count", REF) == "7"


@pytest.mark.parametrize("version", ["0123456789", "HEAD", "--all", "", "refs/syncengine/test", "x" * 50])
def test_anything_but_a_version_is_refused(clone: Clone, version: str) -> None:
    """`state restore` accepts only the beginning of a version's id."""
    project = begun(clone("one"))
    done = project.run("state", "restore", "-y", "--", version)
    assert done.code in (1, 64), done.err
    assert project.rows()["tag/ACME-1"]["doubtful"] is False


def test_a_state_in_a_database_has_no_versions(clone: Clone) -> None:
    """`state versions` and `state restore` of a state in a database are the error `no-versions`."""
    project = clone("one")
    project.settings()
    for words in (("versions",), ("restore", "-y", "0123456789")):
        done = project.run("state", *words)
        assert (done.code, "no-versions" in done.err) == (1, True), done.err


def test_every_state_command_works_on_a_state_in_git(clone: Clone) -> None:
    """State commands work with a state in Git, and other clones see their effects."""
    project, other = begun(clone("one")), clone("two")
    locked = project.run("state", "lock", "--reason", "moving").out
    assert "moving" in other.run("apply", "-y", "--lock-timeout", "1s").err + "moving"
    other.wants(**TWO)
    refused = other.run("apply", "-y", "--lock-timeout", "0s")
    assert (refused.code, "moving" in refused.err) == (6, True), refused.err
    assert other.run("state", "unlock", locked.split("unlock ")[1].strip()).code == 0
    assert other.run("apply", "-y").code == 0
    (project.folder / "exported").write_text(project.run("state", "export").out)
    assert project.run("state", "forget", "-y", "tag/ACME-2").code == 0
    assert "ACME-2" not in other.run("state", "list").out
    assert project.run("state", "import", "-y", "exported").code == 0
    assert "doubtful" in other.run("state", "show", "tag/ACME-2").out + other.run("state", "list").out
    outcomes = [run["outcome"] for run in other.run("state", "history", "--format", "json").document["runs"]]
    assert "refused" in outcomes


def test_posted_time_needs_a_database(clone: Clone) -> None:
    """The inbox of posted time needs a database: with a state in Git its commands are an error."""
    project = begun(clone("one"))
    for words in (("time", "list"), ("time", "inbox"), ("connector", "register")):
        done = project.run(*words)
        assert "Traceback" not in done.err
        if words != ("time", "list"):
            assert (done.code, "state-without-inbox" in done.err) == (1, True), (words, done.err)


@pytest.mark.parametrize(
    "place",
    [
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
    ],
)
def test_an_invalid_place_is_refused(clone: Clone, place: str) -> None:
    """An invalid place is refused before Git is called, so that it is never an option or a command."""
    project = clone("one")
    project.settings(f"state: '{place}'")
    assert project.run("plan").code == 8
    assert not list(project.folder.rglob("pwned"))
    project.settings("state: {env: PLACE}")
    done = project.run("plan", environ={"PLACE": place})
    assert (done.code, "error[state-url]" in done.err, "cr3t" in done.err) == (8, True, False), done.err


def test_a_password_is_neither_accepted_in_the_file_nor_shown(clone: Clone) -> None:
    """A password in the project file is refused; one from the environment is never shown."""
    project = clone("one")
    secret = "git+ref://https://me:s3cr3t@127.0.0.1:9/x.git/refs/syncengine/prod"
    project.settings(f"state: {secret}")
    assert "error[secret-in-file]" in project.run("plan").err
    project.settings("state: {env: PLACE}")
    project.wants(**ONE)
    for words in (("plan",), ("apply", "-y", "--format", "json"), ("state", "list")):
        done = project.run(*words, environ={"PLACE": secret})
        assert done.code == 1
        assert "s3cr3t" not in done.out + done.err
    project.settings("state: git+ref://ssh://git@127.0.0.1:9/x.git/refs/syncengine/prod")
    assert project.run("plan").code == 1, "a user's name is no password"


@pytest.mark.parametrize(
    "place",
    ["http://me:s3cr3t@127.0.0.1:9/x.git", "https://me:1/s3cr3t@127.0.0.1:9/x.git", "http://[::1]:9/x.git"],
)
def test_a_repository_of_this_machine_may_ask_for_a_password(clone: Clone, place: str) -> None:
    """A repository on this machine may have credentials in its URL, also over http; they are never shown."""
    project = clone("one")
    project.settings("state: {env: PLACE}")
    done = project.run("plan", environ={"PLACE": f"git+ref://{place}/refs/syncengine/x"})
    assert (done.code, "error[state-unreachable]" in done.err, "cr3t" in done.err) == (1, True, False), done.err


def test_a_folder_is_named_as_it_is(clone: Clone, tmp_path: Path) -> None:
    project = clone("one")
    project.wants(**ONE)
    for form in ("git+ref://{}/refs/syncengine/x", "git+ref://file://{}/refs/syncengine/x"):
        project.settings(f"state: {form.format(tmp_path / 'me@work' / 'x.git')}")
        assert f"{tmp_path}/me@work/x.git" in project.run("plan").err


def test_the_name_of_a_remote_is_that_of_the_projects_repository(clone: Clone, remote: Path) -> None:
    """The name of a remote is looked up in the project's repository; a path is relative to the project."""
    project = clone("one")
    git(project.folder, "init", "--quiet")
    project.settings("state: git+ref://origin/refs/syncengine/test")
    project.wants(**ONE)
    done = project.run("apply", "-y", "--new-state")
    assert (done.code, "No such remote 'origin'" in done.err) == (1, True), done.err
    git(project.folder, "remote", "add", "origin", str(remote))
    assert project.run("apply", "-y", "--new-state").code == 0
    project.settings("state: git+ref://../remote.git/refs/syncengine/test")
    assert "ACME-1" in project.run("state", "list").out
    assert git(project.folder, "for-each-ref") == ""


def test_a_remote_by_a_relative_path_is_beside_the_repository(clone: Clone, remote: Path) -> None:
    """A remote's relative path is relative to the repository, also for a project in a subfolder."""
    project = clone("one")
    project.wants(**ONE)
    inner = Project(project.folder / "inner", project.url)
    inner.wants(**ONE)
    git(project.folder, "init", "--quiet")
    git(project.folder, "remote", "add", "origin", "../remote.git")
    for each, name in ((project, "outer"), (inner, "inner")):
        each.settings(f"state: git+ref://origin/refs/syncengine/{name}")
        done = each.run("apply", "-y", "--new-state")
        assert done.code == 0, done.err
    assert git(remote, "for-each-ref", "--format=%(refname)").split() == [
        "refs/syncengine/inner",
        "refs/syncengine/outer",
    ]


def test_settings_that_git_reads_by_itself_are_not_passed_on(
    clone: Clone, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only Git settings of the project's own repository are passed on; hosts would refuse a duplicated header."""
    project = clone("one")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(project.folder / "gitconfig"))
    git(project.folder, "config", "--global", "http.extraHeader", "X: user")
    git(project.folder, "init", "--quiet")
    git(project.folder, "remote", "add", "origin", str(remote))
    git(project.folder, "config", "http.https://git.example.com/.extraHeader", "X: job")
    found = Remote.of_name("origin", project.folder)
    assert found.settings == (("http.https://git.example.com/.extraheader", "X: job"),)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can change a file's owner")
def test_an_untrusted_repository_is_an_error_with_the_message_of_git(clone: Clone, remote: Path) -> None:
    """An untrusted repository is an error with Git's message and the command that trusts it."""
    project = clone("one")
    project.wants(**ONE)
    os.chown(remote, 12345, 12345)
    done = project.run("plan")
    assert (done.code, "dubious ownership" in done.err) == (1, True), done.err
    assert f"run `git config --global --add safe.directory {remote}`" in done.err


@pytest.mark.skipif(os.getuid() != 0, reason="only root can change a file's owner")
def test_a_remote_of_a_checkout_of_another_user_is_found(clone: Clone, remote: Path) -> None:
    """A remote in another user's checkout is found by name, but no other setting of that checkout is used."""
    project = clone("one")
    project.wants(**ONE)
    git(project.folder, "init", "--quiet")
    git(project.folder, "remote", "add", "origin", str(remote))
    git(project.folder, "config", "core.sshCommand", "false")
    project.settings("state: git+ref://origin/refs/syncengine/test")
    for path in (project.folder, project.folder / ".git"):
        os.chown(path, 12345, 12345)
    assert project.run("apply", "-y", "--new-state").code == 0
    assert Remote.of_name("origin", project.folder).settings == ()


def test_the_ssh_command_of_the_user_is_used(clone: Clone, tmp_path: Path) -> None:
    project = clone("one")
    project.wants(**ONE)
    (tmp_path / "gitconfig").write_text(f"[core]\n sshCommand = touch {tmp_path}/called && false\n")
    project.settings("state: git+ref://git@127.0.0.1:x.git/refs/syncengine/prod")
    assert project.run("plan", environ={"GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig")}).code == 1
    assert (tmp_path / "called").exists()


def test_a_missing_git_is_an_error(clone: Clone, tmp_path: Path) -> None:
    """Without Git, a state by address or by the name of a remote is the error `state-driver`."""
    project = clone("one")
    project.wants(**ONE)
    for place in (url(tmp_path / "remote.git"), "git+ref://origin/refs/syncengine/test"):
        project.settings(f"state: {place}")
        done = project.run("plan", environ={"PATH": str(tmp_path)})
        assert (done.code, "error[state-driver]" in done.err) == (1, True), done.err


def test_a_refused_run_is_history_also_while_another_holds_the_lock(clone: Clone, remote: Path, tmp_path: Path) -> None:
    """A run that is refused because of a lock is recorded in the history, and the lock's holder keeps it."""
    project = begun(clone("one"))
    state, holder = opened(place_of(remote, tmp_path / "holder"), "elsewhere")
    state.lock(holder, wait=0, request_timeout=1)
    project.wants(**TWO)
    done = project.run("apply", "-y", "--lock-timeout", "0s")
    assert (done.code, "elsewhere" in done.err) == (6, True), done.err
    state.put([Recorded(Key.parse("tag/HELD"), Body({}, (), {}))])
    with state:
        assert state.current_lock() is not None
    other = clone("two")
    assert "HELD" in other.run("state", "list").out
    run = other.run("state", "history", "--format", "json").document["runs"][0]
    assert (run["outcome"], run["exitCode"]) == ("refused", 6)


SMALL = "from syncengine.state import working_copy as w; w.MOST_ROWS = 2; from syncengine.cli import main; main()"


def test_more_rows_than_a_state_in_git_holds_are_refused(clone: Clone, remote: Path, service: Service) -> None:
    """An apply that exceeds the rows of a state in Git is refused before anything is sent, and suggests PostgreSQL."""
    project = begun(clone("one"))
    before, asked = project.rows(), len(service.asked())
    project.wants(tags=[tag(f"ACME-{number}") for number in range(3)])
    command = [sys.executable, "-c", SMALL, "apply", "-y", "--no-delete"]
    done = subprocess.run(command, cwd=project.folder, env=project.surroundings(), capture_output=True, text=True)
    assert (done.returncode, "error[state-too-large]" in done.stderr + done.stdout) == (1, True), done.stderr
    assert "to PostgreSQL" in done.stderr + done.stdout
    assert set(service.asked()[asked:]) <= {"teamInfo"}
    assert (project.rows(), project.is_locked()) == (before, False)
    project.wants(**TWO)
    assert applied(project).code == 0

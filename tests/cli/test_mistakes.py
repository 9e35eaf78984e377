"""Common mistakes of users: each is reported with a way to correct it."""

from __future__ import annotations

import subprocess

import pytest

from .program import Project, tag

OLD, NEW = [tag("ACME-0042"), tag("ACME-0043")], [tag("ACME-0042")]
MISSING = (
    *("apply -y nope.json", "plan nope.json", "validate nope.json", "render nope.json", "show nope.json"),
    *("fmt nope.json", "adopt nope.json", "plan --since nope.json", "state import nope.json", "test nope.json"),
    *("init --from-csv nope.json new", "--config nope.json validate", "validate --var-file nope.json"),
)


@pytest.mark.parametrize("words", MISSING)
def test_all_commands_report_a_missing_file_alike(project: Project, words: str) -> None:
    """Each exits with 64 and one sentence with the given name."""
    project.wants(tags=NEW)
    done = project.run(*words.split())
    assert (done.code, "error[usage]: nope.json: no such file or folder\n" in done.out + done.err) == (64, True), (
        done.err
    )


REFUSED = [
    ("plan --out nowhere/plan.json", "there is no folder nowhere"),
    ("plan --report json=nowhere/plan.json", "there is no folder nowhere"),
    ("apply --max-errors 0", "'0' is not a whole number of at least 1"),
    ("init syncengine.yaml", "DIR is the folder to create, and a list goes with --from-csv"),
    ("plan syncengine.yaml", "is no manifest of this project: name manifests, or nothing for all"),
    ("sandbox --port ten", "'ten' is not a whole number from 0 to 65535"),
    ("time list --limit 501", "'501' is not a whole number from 1 to 500"),
]


@pytest.mark.parametrize(("words", "sentence"), REFUSED)
def test_a_value_that_cannot_be_used_is_refused_before_any_work(project: Project, words: str, sentence: str) -> None:
    """The message says in our own words what is wrong, and nothing is planned or sent."""
    project.wants(tags=NEW)
    done = project.run(*words.split())
    assert (done.code, done.out, sentence in done.err) == (64, "", True), done.err


def test_drift_refuses_an_excluded_name_without_its_kind(project: Project) -> None:
    """The message suggests the address with its kind, as that of `plan` does."""
    done = project.run("drift", "--exclude", "HR-*")
    assert (done.code, "did you mean `tag/HR-*`?" in done.err) == (64, True)


@pytest.mark.parametrize("words", ["show", "forget -y", "erase -y", "quarantine --reason x"])
def test_a_misspelt_address_is_refused_with_the_recorded_one(project: Project, words: str) -> None:
    """`state` commands suggest the nearest recorded address."""
    project.settle(tags=OLD)
    command, *options = words.split()
    done = project.run("state", command, "tag/ACME-0O42", *options)
    assert (done.code, "did you mean `tag/ACME-0042`?" in done.err) == (1, True)


@pytest.mark.parametrize("words", ["undo", "rollback", "state undo", "apply --undo last"])
def test_a_guessed_undo_command_is_answered_with_the_right_one(project: Project, words: str) -> None:
    """The message names `plan --undo RUN`, and not `--redo`."""
    done = project.run(*words.split())
    assert (done.code, "plan --undo RUN" in done.err, "--redo" in done.err) == (64, True, False)


EMPTY = [
    ("apply --reviewed", "--reviewed"),
    ("apply", "[PLAN | PATHS]"),
    ("apply --target", "--target"),
    ("plan", "PATHS"),
    ("plan --since", "--since"),
    ("plan --exclude", "--exclude"),
    ("plan --undo", "--undo"),
    ("plan --out", "--out"),
    ("sandbox --host", "--host"),
    ("sandbox --api-key", "--api-key"),
    ("show x --target", "--target"),
    ("show x --action", "--action"),
    ("show", "FILE"),
    ("plan --env", "--env"),
    ("apply -y --env", "--env"),
    ("--env {} plan", "--env"),
    ("plan --config", "--config"),
    ("plan -C", "-C"),
    ("plan --var-file", "--var-file"),
    ("plan --base", "--base"),
    ("schema -o", "-o"),
    ("schema", "[NAME]..."),
    ("publish --to github", "FILE"),
    ("adopt", "FILE"),
    ("state list", "[ADDRESS]..."),
    ("time show", "GROUP_ID"),
    ("time inbox --user", "--user"),
]


@pytest.mark.parametrize(("words", "name"), EMPTY)
def test_no_command_takes_an_empty_value(project: Project, words: str, name: str) -> None:
    """Each option or argument that is empty is named, and no file is changed: a variable may not be set."""
    project.wants(tags=OLD)
    before, value = project.files(), " " if name == "--env" else ""
    line = [value if word == "{}" else word for word in words.split()]
    done = project.run(*line, *([] if "{}" in words else [value]))
    assert (done.code, done.out, project.files() == before) == (64, "", True), done.err
    assert f"{name} is empty, perhaps because a variable is not set" in done.err, done.err


def test_a_text_and_a_variable_may_be_empty(project: Project) -> None:
    """`--var K=` sets an empty variable, and `--reason` may be empty."""
    project.wants(tags=OLD)
    assert project.run("plan", "--var", "K=").code == 0
    assert project.run("state", "lock", "--reason", "").code == 0


def test_help_is_shown_whatever_is_empty(project: Project) -> None:
    """`--help` works although another option has an empty value."""
    assert project.run("plan", "--env", "", "--help").code == 0


def test_show_warns_of_a_target_that_the_plan_lacks(project: Project) -> None:
    """Otherwise an empty output would look like a plan without changes."""
    project.wants(tags=OLD)
    assert project.run("plan", "--out", "saved.plan").code == 0
    done = project.run("show", "saved.plan", "--target", "tag/ACME-0O42", "--target", "tag/ACME-0042")
    assert (done.code, done.err.count("nothing-selected")) == (0, 1)
    assert "tag/ACME-0O42 selects nothing in this plan" in done.err
    assert project.run("show", "saved.plan", "--target", "tag/*").err == ""


@pytest.mark.parametrize("none", ["0", "0s"])
def test_zero_is_a_lock_timeout_in_any_unit(project: Project, none: str) -> None:
    """An unknown unit is refused."""
    project.wants(tags=OLD)
    assert project.run("apply", "-y", "--lock-timeout", none).code == 0
    refused = project.run("apply", "-y", "--lock-timeout", "0x")
    assert (refused.code, "'0x' is not a duration" in refused.err) == (64, True)


def test_the_command_that_approves_an_undo_names_its_file(project: Project) -> None:
    """Without the file, `apply` would apply the manifests.

    Before the undo is saved, the command has FILE as placeholder.
    """
    project.settle(tags=OLD)
    done = project.run("plan", "--undo", "last")
    assert "    syncengine apply FILE --approve-deletes 2@" in done.out
    assert "FILE is the file that `plan --undo RUN --out FILE` writes." in done.out
    done = project.run("plan", "--undo", "last", "--target", "tag/*")
    assert (done.out.count("syncengine apply FILE --approve-deletes 2@"), done.out.count("--target")) == (1, 0)
    done = project.run("plan", "--undo", "last", "--out", "undo.plan")
    assert "    syncengine apply undo.plan --approve-deletes 2@" in done.out
    assert "FILE is the file" not in done.out


def test_an_unknown_git_remote_is_reported_with_the_cure(project: Project) -> None:
    """If the remote has no state, the message asks to check its name before a new state is begun."""
    subprocess.run(["git", "init", "--quiet", str(project.folder)], check=True)
    project.settings("state: git+ref://origin/refs/syncengine/prod")
    done = project.run("plan")
    assert (done.code, "correct the name, or run `git remote add origin URL`" in done.err) == (1, True)
    subprocess.run(["git", "init", "--quiet", "--bare", str(project.folder.parent / "remote.git")], check=True)
    subprocess.run(["git", "remote", "add", "origin", "../remote.git"], cwd=project.folder, check=True)
    done = project.run("plan")
    assert (done.code, "check the name, begin a new state" in done.err) == (4, True)


@pytest.mark.parametrize(
    ("words", "near"), [("plan -out plan.json", "--out"), ("plan -target=tag/A", "--target"), ("plan -k", "")]
)
def test_a_long_option_with_one_dash_is_corrected(project: Project, words: str, near: str) -> None:
    """Users of Terraform write one dash. An unknown short option gets no suggestion."""
    done = project.run(*words.split())
    assert (done.code, done.err.strip().endswith(f"Did you mean '{near}'?") == bool(near)) == (64, True)


def test_state_export_and_history_write_messages_to_stderr(project: Project) -> None:
    """`export -o` names its file, and `history` suggests the nearest recorded address."""
    project.settle(tags=OLD)
    done = project.run("state", "export", "-o", "rows.jsonl")
    assert (done.out, done.err) == ("", "Wrote rows.jsonl\n")
    done = project.run("state", "history", f"tag/{OLD[0]['name']}X")
    assert (done.code, done.out) == (0, "")
    assert done.err == f"No history of tag/{OLD[0]['name']}X is recorded; did you mean `tag/{OLD[0]['name']}`?\n"

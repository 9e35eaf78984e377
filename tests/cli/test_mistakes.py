"""Common mistakes of users: each is reported with a way to correct it, before anything is done."""

import shlex
from collections.abc import Iterator

import pytest

from tests.support.git import bare, git

from .program import Project, tag
from .service import serving

OLD, NEW = [tag("ACME-0042"), tag("ACME-0043")], [tag("ACME-0042")]

MISSING = (
    *("apply -y nope.json", "plan nope.json", "validate nope.json", "render nope.json", "show nope.json"),
    *("fmt nope.json", "adopt nope.json", "plan --since nope.json", "state import nope.json", "test nope.json"),
    *("init --from-csv nope.json new", "--config nope.json validate", "validate --var-file nope.json"),
)
EMPTY = [
    ("apply --reviewed ''", "--reviewed"),
    ("apply ''", "[PLAN | PATHS]"),
    ("plan ''", "PATHS"),
    ("plan --undo ''", "--undo"),
    ("sandbox --host ''", "--host"),
    ("show x --target ''", "--target"),
    ("show ''", "FILE"),
    ("plan --env ' '", "--env"),
    ("--env ' ' plan", "--env"),
    ("plan -C ''", "-C"),
    ("schema ''", "[NAME]..."),
    ("adopt ''", "FILE"),
    ("state list ''", "[ADDRESS]..."),
    ("time show ''", "GROUP_ID"),
]
"""Each option or argument that is empty is named: a variable may not be set."""
UNDO = "plan --undo RUN"
STATE = ".syncengine/"
"""May change: it may record a refused run."""
MISTAKES = [
    *((words, "error[usage]: nope.json: no such file or folder\n") for words in MISSING),
    *((words, f"{name} is empty, perhaps because a variable is not set") for words, name in EMPTY),
    ("plan --out nowhere/plan.json", "there is no folder nowhere"),
    ("plan --report json=nowhere/plan.json", "there is no folder nowhere"),
    ("plan --out -", "prints it to stdout"),
    ("plan --out z.plan --report markdown=./z.plan", "a report is written to the same file"),
    ("plan --report json=a.json --report text=./a.json", "two reports are written to"),
    ("plan --report nonsense", "--report"),
    *((f"-C typo {words}", "typo: no such folder") for words in ("schema -o made", "plan", "sandbox --port 0")),
    ("apply --max-errors 0", "'0' is not a whole number of at least 1"),
    ("apply -y --lock-timeout 0x", "'0x' is not a duration"),
    ("sandbox --port ten", "'ten' is not a whole number from 0 to 65535"),
    ("time list --limit 501", "'501' is not a whole number from 1 to 500"),
    ("init syncengine.yaml", "DIR is the folder to create, and a list goes with --from-csv"),
    ("plan syncengine.yaml", "is no manifest of this project: name manifests, or nothing for all"),
    ("apply -y --approve-deletes all", "'all' is not an approval: copy the whole COUNT@HASH"),
    ("apply -y --target 'tag/*' --sweep", "--sweep"),
    ("drift --since 7", "'7' is not a time: write a duration"),
    ("state prune --before ''", " is empty, perhaps because a variable"),
    ("drift --exclude 'HR-*'", "did you mean `tag/HR-*`?"),
    *(
        (f"{command} {option} {name}", says)
        for command in ("plan", "apply -y")
        for option in ("--target", "--exclude")
        for name, says in (("ACME-0042", "tag/ACME-0042"), ("tag/ACME-42", "tag/ACME-0042"), ("tag/X*", "no resource"))
    ),
    *((words, UNDO) for words in ("undo", "rollback", "state undo", "apply --undo last")),
    ("plan --undo nosuchrun", "the history has no run nosuchrun"),
    *((f"plan --undo last {option}", option.split()[0]) for option in ("--base main", "--no-delete", "--redo")),
    ("plan --undo last manifests", "--undo cannot be combined with paths"),
    ("plan --force", "--force needs --undo"),
    # Users of Terraform write one dash. An unknown short option gets no suggestion.
    ("plan -out plan.json", "Did you mean '--out'?\n"),
    ("plan -k", "'-k'.\n"),
    ("plan --outt plan.json", "No such option '--outt'. Did you mean '--out'?\n"),
    ("--snadbox plan", "No such option '--snadbox'. Did you mean '--sandbox'?\n"),
    ("apply --yes", "No such option '--yes'. Did you mean '-y'?\n"),
    ("plan --yes", "No such option '--yes'.\n"),
    ("plan --color always", "No such "),
    ("valdate", "Did you mean 'validate'?"),
    ("xyzzy", "No such command 'xyzzy'.\n"),
    ("help", "`syncengine COMMAND --help`"),
    ("show", "FILE"),
]


@pytest.fixture(scope="module")
def applied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project whose tags are applied, of which the manifest now lacks one. No test of it changes a file."""
    with serving() as service:
        project = Project(tmp_path_factory.mktemp("mistakes") / "project", service.url)
        project.settle(tags=OLD)
        project.wants(tags=NEW)
        yield project


@pytest.mark.parametrize(("words", "says"), MISTAKES)
def test_a_mistake_is_refused_with_its_cure_before_any_work(applied: Project, words: str, says: str) -> None:
    """The message is one `error[usage]` in our own words on stderr, and no file is changed."""
    kept = {name: content for name, content in applied.files().items() if not name.startswith(STATE)}
    done = applied.run(*shlex.split(words))
    shown = done.out + done.err
    assert (done.code, shown.count("error[usage]: "), "Error:" in shown) == (64, 1, False), done
    assert done.out == "" or "validate" in words
    assert says in shown
    assert says != UNDO or "--redo" not in shown
    assert {name: content for name, content in applied.files().items() if not name.startswith(STATE)} == kept


@pytest.mark.parametrize("words", ["show", "forget -y", "erase -y", "quarantine --reason x"])
def test_a_misspelt_address_is_refused_with_the_recorded_one(applied: Project, words: str) -> None:
    command, *options = words.split()
    done = applied.run("state", command, "tag/ACME-0O42", *options)
    assert (done.code, done.out, "did you mean `tag/ACME-0042`?" in done.err) == (1, "", True)


def test_what_may_be_empty_or_zero(project: Project) -> None:
    """A variable, a reason, a time-out in any unit, and what else stands beside `--help`."""
    project.wants(tags=OLD)
    for words in ("plan --var K=", "state lock --reason ''", "plan --env '' --help", "plan --target 'tag/ACME-*'"):
        assert project.run(*shlex.split(words)).code == 0, words
    for none in ("0", "0s"):
        assert project.run("apply", "-y", "--lock-timeout", none).code == 6


def test_show_warns_of_a_target_that_the_plan_lacks(project: Project) -> None:
    """Otherwise an empty output would look like a plan without changes."""
    project.wants(tags=OLD)
    assert project.run("plan", "--out", "saved.plan").code == 0
    done = project.run("show", "saved.plan", "--target", "tag/ACME-0O42", "--target", "tag/ACME-0042")
    assert (done.code, done.err.count("nothing-selected")) == (0, 1)
    assert "tag/ACME-0O42 selects nothing in this plan" in done.err
    assert project.run("show", "saved.plan", "--target", "tag/*").err == ""


def test_the_command_that_approves_an_undo_names_its_file(applied: Project) -> None:
    """Without the file, `apply` would apply the manifests. Before the undo is saved, FILE stands for it."""
    for words in ((), ("--target", "tag/*")):
        done = applied.run("plan", "--undo", "last", *words)
        assert (done.out.count("    syncengine apply FILE --approve-deletes 2@"), "--target" in done.out) == (1, False)
        assert "FILE is the file that `plan --undo RUN --out FILE` writes." in done.out
    done = applied.run("plan", "--undo", "last", "--out", "undo.plan")
    assert "    syncengine apply undo.plan --approve-deletes 2@" in done.out
    assert "FILE is the file" not in done.out


def test_an_unknown_git_remote_is_reported_with_the_cure(project: Project) -> None:
    """If the remote has no state, the message asks to check its name before a new state is begun."""
    git(project.folder, "init", "--quiet")
    project.settings("state: git+ref://origin/refs/syncengine/prod")
    done = project.run("plan")
    assert (done.code, "correct the name, or run `git remote add origin URL`" in done.err) == (1, True)
    bare(project.folder.parent / "remote.git")
    git(project.folder, "remote", "add", "origin", "../remote.git")
    done = project.run("plan")
    assert (done.code, "check the name, begin a new state" in done.err) == (4, True)


def test_state_export_and_history_write_messages_to_stderr(applied: Project) -> None:
    """`export -o` names its file, and `history` suggests the nearest recorded address."""
    done = applied.run("state", "export", "-o", "rows.jsonl")
    assert (done.out, done.err) == ("", "Wrote rows.jsonl\n")
    done = applied.run("state", "history", "tag/ACME-0042X")
    assert (done.code, done.out) == (0, "")
    assert done.err == "No history of tag/ACME-0042X is recorded; did you mean `tag/ACME-0042`?\n"

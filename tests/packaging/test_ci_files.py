"""`init --ci` writes CI files for a host, which install this program and nothing else, and keep its secrets.

An analyser of workflows accepts them and the repository's own files, and all fit published schemas.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from syncengine import DISTRIBUTION, __version__
from syncengine.tools.init import CI, EXAMPLES, starter_files
from syncengine.tools.init.jobs import ACTIONS, COMMANDS, CONDITIONS, DELIVERED, UNCHOSEN, delivered, installation_of
from tests.cli.program import Project
from tests.manifest.loading import write
from tests.support.git import git

from .checkers import flaws, misfits
from .test_wheel import BUILT

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
SCHEMAS = {
    ".github/workflows/syncengine.yml": "vendor.github-workflows",
    ".gitlab-ci.yml": "vendor.gitlab-ci",
    "action.yml": "vendor.github-actions",
}
PINNED = f"{DISTRIBUTION}[postgresql]=={__version__}"
COMMIT = "3d3c42e5aac5ba805825da76410c181273ba90b1"
PACKAGE = "firm-syncengine==2.0"
WRITTEN = {CI[host]: starter_files(installation_of(PACKAGE), host)[CI[host]] for host in CI}
MADE = {**WRITTEN, "action.yml": delivered()["action.yml"]}
VARIABLES = {EXAMPLES["github"]: "env", EXAMPLES["gitlab"]: "variables"}


def ci_files(folder: Path, *arguments: str) -> dict[str, Any]:
    done = Project(folder, "sandbox").run("init", "made", *arguments)
    assert done.code == 0, done.err
    return {name: yaml.safe_load((folder / "made" / name).read_text(encoding="utf-8")) for name in VARIABLES}


def shell(command: str, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    given = {"PATH": os.environ["PATH"], **environ}
    return subprocess.run(["bash", "-ec", command], cwd=folder, env=given, capture_output=True, text=True, check=False)


def package_variables(folder: Path, *arguments: str) -> list[dict[str, str]]:
    """The variables of each example file of `init`, without the one that is about the checkout."""
    return [
        {key: value for key, value in document[VARIABLES[name]].items() if key != "GIT_DEPTH"}
        for name, document in ci_files(folder, *arguments).items()
    ]


def test_examples_name_no_package_until_somebody_chooses_one(tmp_path: Path) -> None:
    """No public index has the program, so the example's install command fails and names the `init` command to run."""
    assert package_variables(tmp_path) == [{"SYNCENGINE_PACKAGE": ""}] * 2
    for name in ("INSTALL", "WHEELS"):
        done = shell(COMMANDS[name], tmp_path, SYNCENGINE_PACKAGE="")
        assert done.returncode != 0
        assert "syncengine init --ci HOST --install REQUIREMENT" in done.stderr


@pytest.mark.parametrize("host", CI)
def test_jobs_are_not_written_without_a_package_to_install(tmp_path: Path, host: str) -> None:
    """`--ci` without `--install` is a usage error with lines to copy, each of which `init` accepts."""
    project = Project(tmp_path, "sandbox")
    done = project.run("init", "my proj", "--ci", host)
    assert (done.code, "error[usage]: --ci needs --install REQUIREMENT" in done.err) == (64, True), done.err
    assert "git remote get-url origin" in done.err
    for package, words in (("", "give REQUIREMENT"), ("syncengine", "another project's library")):
        refused = project.run("init", "my proj", "--ci", host, "--install", package)
        assert (refused.code, words in refused.err) == (64, True), refused.err
    assert not (tmp_path / "my proj").exists()
    lines = [shlex.split(line) for line in done.err.splitlines() if line.startswith("  syncengine init ")]
    kinds = [re.search(r"==|git\+|\.whl", line[-1]) for line in lines]
    assert [kind and kind[0] for kind in kinds] == ["==", "git+", ".whl"]
    for number, line in enumerate(lines):
        assert line == ["syncengine", "init", "my proj", "--ci", host, "--install", line[-1]]
        package = line[-1].replace("@COMMIT", f"@{COMMIT}")
        assert project.run("init", f"made-{number}", "--ci", host, "--install", package).code == 0


@pytest.mark.parametrize("name", WRITTEN)
def test_the_jobs_install_nothing_else(name: str) -> None:
    named = '"${SYNCENGINE_PACKAGE:?is empty, name one by syncengine init --ci HOST --install REQUIREMENT}"'
    installs = {line for line in scripts(jobs(name)) if re.search(r"\bpip\b", line)}
    assert installs
    assert installs <= {
        f"python -I -m pip install {named}",
        f"rm -rf .syncengine/wheels; python -I -m pip wheel --wheel-dir .syncengine/wheels {named}",
        'test -z "$(git ls-files .syncengine)" || exit 1; '
        "python -I -m pip install --no-index --no-deps .syncengine/wheels/*.whl",
    }


@pytest.mark.parametrize("committed", [".syncengine/wheels/evil.whl", ".syncengine"])
def test_a_wheel_that_a_branch_brings_is_not_installed(tmp_path: Path, committed: str) -> None:
    (tmp_path / committed).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / committed).symlink_to("elsewhere")
    git(tmp_path, "init", "-q")
    command = COMMANDS["INSTALL_WHEELS"].replace("python", "echo installs")
    for files, code in (([], 0), ([committed], 1)):
        git(tmp_path, "add", "-f", *files)
        done = shell(command, tmp_path)
        assert (done.returncode, "installs" in done.stdout) == (code, code == 0)


def test_no_text_tells_users_to_install_another_projects_package() -> None:
    texts = [*ROOT.glob("*.md"), *ROOT.glob(".*.yaml"), *(ROOT / "syncengine").rglob("*")]
    for path in texts:
        if path.is_file() and path.suffix in {".md", ".py", ".yml", ".yaml", ".j2", ".html"}:
            installs = r"(?:pip3?|pipx|uv) (?:install|add|run)[^\n`]*\bsyncengine\b(?![-_/.])"
            assert re.findall(installs, path.read_text()) == [], path


WHEEL = "syncengine_connect-9.9-py3-none-any.whl"
FILES = "https://files.example.com"
TAKEN = {
    "syncengine-connect": PINNED,
    "firm-syncengine==2.0": "firm-syncengine[postgresql]==2.0",
    f"vendor/{WHEEL}": f"vendor/{WHEEL}[postgresql]",
    f"vendor/{WHEEL}[dev]": f"vendor/{WHEEL}[dev]",
    f"{FILES}/{WHEEL}": f"syncengine-connect[postgresql] @ {FILES}/{WHEEL}",
    f"x @ {FILES}/{WHEEL}": f"x[postgresql] @ {FILES}/{WHEEL}",
    f"git+ssh://git@example.com/x.git@{COMMIT}": f"syncengine-connect[postgresql] @ git+ssh://git@example.com/x.git@{COMMIT}",
    f"x @ git+{FILES}/x.git@{COMMIT}#subdirectory=y": f"x[postgresql] @ git+{FILES}/x.git@{COMMIT}#subdirectory=y",
    f"{FILES}/@CHECKOUT@/{WHEEL}": f"syncengine-connect[postgresql] @ {FILES}/@CHECKOUT@/{WHEEL}",
}


@pytest.mark.parametrize(("text", "package"), TAKEN.items(), ids=TAKEN)
def test_another_source_can_be_named(text: str, package: str) -> None:
    """A requirement, wheel or repository gets the PostgreSQL extra, in pip's syntax."""
    assert installation_of(text).package == package


def test_a_mirror_of_the_index_can_be_named(tmp_path: Path) -> None:
    """A URL that is no archive is taken as an index, and the package stays this version of ours."""
    mirror = "https://mirror.example.com/simple/"
    expected = {"SYNCENGINE_PACKAGE": PINNED, "PIP_INDEX_URL": mirror}
    assert package_variables(tmp_path, "--install", mirror) == [expected] * 2


REFUSED = {
    "syncengine": "another project's library on the package index: name a package of your own",
    "-r x.txt": "expected a requirement",
    'x"\n  - run: id': "expected a requirement",
    "x y": "or a requirement",
    "x": "write x==VERSION",
    "x>=1": "write x==VERSION",
    "syncengine_connect>=0.1,<2": "==VERSION",
    "git+https://example.com/x.git": "end the URL in @COMMIT",
    f"git+https://example.com/x.git#{COMMIT}": "end the URL in @COMMIT",
    "hg+https://example.com/x": "https is expected",
    f"/home/me/{WHEEL}": "only in the repository",
    f"../{WHEEL}": "only in the repository",
    "https://user:secret@example.com/simple": "would be committed",
    "https://example.com/x.whl?private_token=x": "would be committed",
    f"git+https://example.com/x.git?token=x@{COMMIT}": "would be committed",
    "http://example.com/x.whl": "https is expected",
    "file:///x.whl": "https is expected",
    "https://[x/": "the URL is invalid",
    "https://mirror.example.com/simple/%0Arun": "a control character",
    f"x @ https://files.example.com/%00/{WHEEL}": "a control character",
    "https://mirror.example.com/my simple": "a blank",
    "REQUIREMENT": "write what the jobs install in its place",
}


@pytest.mark.parametrize(("text", "words"), REFUSED.items(), ids=REFUSED)
def test_what_must_not_be_installed_or_committed_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        installation_of(text)


BEFORE = starter_files()


@settings(deadline=None)
@given(st.text() | st.from_regex(r"x[ -~\n]{0,12}", fullmatch=True) | st.from_regex(r"https://x/[ -~]{0,12}"))
def test_no_text_breaks_out_of_its_place(text: str) -> None:
    """An accepted text is the value of one variable, and the rest of the file is unchanged."""
    try:
        chosen = installation_of(text)
    except ValueError:
        return
    for name, held in VARIABLES.items():
        before, after = (yaml.load(files[name], yaml.CSafeLoader) for files in (BEFORE, starter_files(chosen)))
        assert after.pop(held)["SYNCENGINE_PACKAGE"] == chosen.package
        del before[held]
        assert before == after
        assert not set("$`;\"'\\\n") & set(chosen.package + (chosen.mirror or ""))


STEPS = {
    "github": ["SYNCENGINE_STATE_READER", "create `production`", ".github/workflows/syncengine.yml", "`Plan`"],
    "gitlab": ["GITLAB_TOKEN", "schedules", ".gitlab-ci.yml", "Pipelines must succeed", "oldest_first"],
}


@pytest.mark.parametrize("host", CI)
def test_a_new_project_has_the_jobs_of_its_host(tmp_path: Path, host: str) -> None:
    """They are written where the host reads them, without files for other hosts. `init` lists what to set up in order:
    service, state, adopt and first apply, then secrets, environment and the required check."""
    project = Project(tmp_path, "sandbox")
    done = project.run("init", "made", "--ci", host, "--install", PACKAGE)
    assert done.code == 0, done.err
    assert (tmp_path / "made" / CI[host]).read_text() == MADE[CI[host]]
    assert not (tmp_path / "made" / "ci").exists()
    assert not any((tmp_path / "made" / other).exists() for key, other in CI.items() if key != host)
    order = ["Next:", "baseUrl", "state:", "made adopt", "made apply --new-state", *STEPS[host]]
    places = [done.err.index(word) for word in order]
    assert places == sorted(places)
    assert "firm-syncengine is your team's name" in done.err
    wheel = "vendor/x-1-py3-none-any.whl"
    err = project.run("init", "with", "--ci", host, "--install", wheel).err
    assert f"Commit {CI[host]} and {wheel}" in err


@pytest.mark.parametrize("host", CI)
def test_a_project_that_exists_gets_jobs_and_keeps_its_files(tmp_path: Path, host: str) -> None:
    project = Project(tmp_path, "sandbox")
    before = project.files()
    words = ("init", "--ci", host, "--install")
    assert project.run(*words, PACKAGE).code == 0
    assert project.files() == {**before, CI[host]: MADE[CI[host]].encode()}
    assert "was not changed" not in project.run(*words, PACKAGE).err
    for other in ("firm-syncengine==1.0", "https://pypi.example.com/simple/"):
        done = project.run(*words, other)
        assert (done.code, f"{CI[host]} was not changed." in done.err, other in done.err) == (0, True, False), done.err
        assert "edit SYNCENGINE_PACKAGE in it" in done.err
    (tmp_path / CI[host]).write_text("mine")
    done = project.run(*words, PACKAGE)
    assert (done.code, "already exists and was kept" in done.err) == (0, True)
    assert (tmp_path / CI[host]).read_text() == "mine"


def test_examples_are_the_files_that_init_writes() -> None:
    """Without a chosen host, both examples start with comments: no host runs them, and how to change that."""
    files = starter_files(UNCHOSEN)
    for host, name in EXAMPLES.items():
        chosen = files[name].replace('SYNCENGINE_PACKAGE: ""', 'SYNCENGINE_PACKAGE: "firm-syncengine[postgresql]==2.0"')
        head, _, rest = chosen.partition(MADE[CI[host]])
        assert (rest, {line[:1] for line in head.splitlines()}) == ("", {"#"})
        assert head.startswith("# An example to read: no host runs it here.")
        assert f"syncengine init --ci {host} --install" in head
        assert CI[host] in head


def test_examples_name_a_branch_and_leave_a_host_with_jobs_alone(tmp_path: Path) -> None:
    """The GitHub example names the branch `main`; there is no example for a host that already has jobs.

    Jobs are not written below a repository, where no host reads them.
    """
    assert ci_files(tmp_path)[EXAMPLES["github"]][True]["push"] == {"branches": ["main"]}
    project = Project(tmp_path, "sandbox")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / CI["gitlab"]).write_text("mine")
    assert project.run("init", "other").code == 0
    assert [file.name for file in (tmp_path / "other/ci").iterdir()] == ["github-actions.yml"]
    git(tmp_path, "init", "-q")
    done = project.run("init", "below", "--ci", "github", "--install", PACKAGE)
    assert (done.code, "at the root of a repository" in done.err) == (1, True)
    assert not (tmp_path / "below").exists()


@pytest.mark.parametrize(
    ("branches", "origin", "branch"),
    [
        ([], None, "main"),
        (["master"], None, "master"),
        (["master", "main"], None, "main"),
        (["feature"], None, "main"),
        (["main"], "release+1", r"release\+1"),
    ],
)
def test_what_is_merged_into_the_default_branch_is_applied(
    tmp_path: Path, branches: list[str], origin: str | None, branch: str
) -> None:
    """The default branch is origin's HEAD if the clone knows it; characters of a pattern are escaped."""
    git(tmp_path, "init", "-q")
    tree = git(tmp_path, "commit-tree", "-m", "x", git(tmp_path, "write-tree"))
    for name in branches:
        git(tmp_path, "update-ref", f"refs/heads/{name}", tree)
    if origin:
        git(tmp_path, "symbolic-ref", "refs/remotes/origin/HEAD", f"refs/remotes/origin/{origin}")
    done = Project(tmp_path, "sandbox").run("init", "--ci", "github", "--install", PACKAGE)
    document = yaml.load((tmp_path / CI["github"]).read_text(), yaml.BaseLoader)
    assert document["on"]["push"] == {"branches": [branch]}
    assert f"only the branch {origin or branch}" in done.err


# --- what the files say


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, MADE)
    return tmp_path


@pytest.mark.parametrize("name", DELIVERED)
def test_the_files_of_the_repository_are_made_of_the_definition(name: str) -> None:
    """To change such a file, edit its template and write the text that this test expects."""
    assert (ROOT / name).read_text(encoding="utf-8") == delivered()[name]


@pytest.mark.parametrize("text", [*MADE.values(), *delivered().values()])
def test_no_place_of_a_file_is_left_empty(text: str) -> None:
    assert not re.search(r"@[A-Z_]+@", text)


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_ci_file_fits_the_published_schema(folder: Path, name: str) -> None:
    assert misfits(SCHEMAS[name], folder / name) == ""


@pytest.mark.parametrize("path", [*WORKFLOWS, *FORMS], ids=lambda path: path.stem)
def test_a_file_of_the_repository_fits_the_published_schema(path: Path) -> None:
    """Workflows, and the forms of issues, of which every field has an id and a label."""
    form = f"vendor.github-issue-{'config' if path.stem == 'config' else 'forms'}"
    assert misfits(form if path in FORMS else SCHEMAS[CI["github"]], path) == ""


def test_schema_and_analyser_find_planted_flaws(folder: Path) -> None:
    """Otherwise the tests above would prove nothing."""
    text = MADE[CI["github"]]
    for harm, by in FLAWS.values():
        assert harm in text
        text = text.replace(harm, by, 1)
    (folder / CI["github"]).write_text(text)
    assert set(FLAWS) <= set(flaws(folder))
    (folder / CI["github"]).write_text(text.replace("runs-on", "run-on"))
    assert misfits(SCHEMAS[CI["github"]], folder / CI["github"])


def test_an_analyser_of_workflows_finds_nothing(folder: Path) -> None:
    """No template in a script, no action pinned by a tag, no unused permission, no secret where it is not needed."""
    assert flaws(folder, *WORKFLOWS) == []


FLAWS = {
    "dangerous-triggers": ("  pull_request:\n", "  pull_request_target:\n"),
    "template-injection": ("run: syncengine fmt --check", 'run: echo "${{ github.head_ref }}"'),
    "unpinned-uses": (ACTIONS["CHECKOUT"], "actions/checkout@v4"),
    "artipacked": (", persist-credentials: false", ""),
    "excessive-permissions": ("permissions: {}", "permissions: write-all"),
}


def jobs(name: str) -> dict[str, Any]:
    document = yaml.safe_load(MADE[name])
    if name == "action.yml":
        return {"action": document["runs"]}
    return document.get("jobs") or {k: v for k, v in document.items() if "script" in (v or {})}


def scripts(jobs: dict[str, Any]) -> list[str]:
    return [
        line.strip()
        for job in jobs.values()
        for line in job.get("script") or [step["run"] for step in job["steps"] if "run" in step]
    ]


def test_code_of_a_fork_gets_no_secrets() -> None:
    for text in MADE.values():
        assert not re.search(r"pull_request_target|workflow_run", text)
    plan = jobs(CI["github"])["plan"]
    steps = {step["name"]: step for step in plan["steps"] if "name" in step}
    assert [n for n, step in steps.items() if "secrets." in json.dumps(step)] == ["Plan"]
    assert steps["Plan"]["if"] == CONDITIONS["PLANNED"]
    assert steps["Plan of a fork"]["if"] == CONDITIONS["FOREIGN"]
    assert "SYNCENGINE_API_KEY" not in json.dumps(plan)
    own = "$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_MERGE_REQUEST_PROJECT_ID"
    for job in ("plan", "publish"):
        assert all(own in rule["if"] for rule in jobs(CI["gitlab"])[job]["rules"])


def test_the_action_gives_a_fork_no_state() -> None:
    """It plans a fork's pull request like the job, and installs the program from its own commit."""
    steps = {each["name"]: each for each in yaml.safe_load(MADE["action.yml"])["runs"]["steps"] if "name" in each}
    plan = {step["name"]: step for step in jobs(CI["github"])["plan"]["steps"] if "name" in step}
    for name in ("Plan", "Plan of a fork"):
        assert (steps[name]["if"], steps[name]["run"]) == (plan[name]["if"], plan[name]["run"])
    assert "inputs.state" not in json.dumps(steps["Plan of a fork"])
    assert steps["Install"]["env"] == {"SYNCENGINE_PACKAGE": "${{ github.action_path }}[postgresql]"}


def test_only_the_step_that_needs_a_secret_has_it() -> None:
    """Planning has a read-only state, applying has the API key, and publishing has only a token."""
    steps = [(job, step) for job, body in jobs(CI["github"]).items() for step in body["steps"] if step.get("env")]
    token, writes = ["GITHUB_TOKEN"], ["SYNCENGINE_API_KEY", "SYNCENGINE_STATE"]
    assert {(job, step["name"]): sorted(step["env"]) for job, step in steps} == {
        ("plan", "Plan"): ["MERGE_BASE", "SYNCENGINE_STATE"],
        **dict.fromkeys((("plan", "Publish"), ("apply", "Fetch the reviewed plans"), ("apply", "Publish")), token),
        **dict.fromkeys((("apply", "Apply"), ("reassert", "Reassert"), ("drift", "Drift")), writes),
    }
    for job in ("plan", "drift"):
        assert "${{ secrets.SYNCENGINE_STATE_READER }}" in json.dumps(jobs(CI["github"])[job])
    access = {"name": "publish", "action": "access"}
    assert {name: job.get("environment") for name, job in jobs(CI["gitlab"]).items()} == {
        **dict.fromkeys(("package", "check")),
        "plan": {**access, "name": "plan"},
        **dict.fromkeys(("publish", "reviewed", "report"), access),
        **dict.fromkeys(("apply", "reassert"), "production"),
        "drift": {**access, "name": "production"},
    }


def test_no_job_drops_a_waiting_apply() -> None:
    """By default, GitHub keeps one waiting run of a group, and GitLab cancels pipelines of older commits."""
    groups = {name: job["concurrency"]["group"] for name, job in jobs(CI["github"]).items()}
    assert len(set(groups.values())) == len(groups)
    assert jobs(CI["github"])["apply"]["concurrency"] == {
        "group": "syncengine-apply",
        "cancel-in-progress": False,
        "queue": "max",
    }
    assert "--lock-timeout" in COMMANDS["APPLY_GITHUB"]
    assert "--lock-timeout" in COMMANDS["REASSERT"]
    document = yaml.safe_load(MADE[CI["gitlab"]])
    (merged,) = (rule for rule in document["workflow"]["rules"] if "CI_DEFAULT_BRANCH" in rule["if"])
    assert merged["auto_cancel"] == {"on_new_commit": "none"}
    assert not document["apply"].get("interruptible")


FIRST_LINES = {
    f"{job}_GITLAB": COMMANDS[f"CLEAN_{clean}_GITLAB"]
    for job, clean in (("VALIDATE", "CHECK"), ("PLAN", "PLAN"), ("APPLY", "APPLY"), ("DRIFT", "DRIFT"))
}
"""The first line of each job that passes on what it has written also when it fails, by its last command."""
OUTPUT = re.compile(r" (?:>|tee|--dotenv|-o|--wheel-dir|--report) (?:json=)?\"?([$\w./-]+)")


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_job_writes_is_outside_of_the_checkout_or_removed_first(name: str) -> None:
    """Otherwise a committed file could pass for the job's output when its command cannot write it."""
    command = COMMANDS[name]
    files = OUTPUT.findall(command)
    assert len(files) == len(re.findall(" (?:>|tee|--dotenv|-o|--wheel-dir|--report) ", command))
    for file in files:
        first = f"rm -rf {file}"
        assert file.startswith("$RUNNER_TEMP") or command.startswith(first) or FIRST_LINES.get(name) == first, file


def test_what_a_failed_job_passes_on_is_removed_before_anything_can_fail() -> None:
    """A plan job that fails while it installs must not pass on a plan that the branch has committed."""
    jobs = [job for job in yaml.safe_load(MADE[CI["gitlab"]]).values() if isinstance(job, dict)]
    kept = [job for job in jobs if job.get("artifacts", {}).get("when") == "always"]
    assert len(kept) == len(FIRST_LINES)
    for job in kept:
        (file,) = job["artifacts"].get("paths") or job["artifacts"]["reports"].values()
        assert job["script"][0] == f"rm -rf {file}"


def test_the_files_name_the_role_that_may_only_read() -> None:
    for text in WRITTEN.values():
        assert "for a role that may only SELECT" in " ".join(text.replace("#", " ").split())


@pytest.mark.parametrize("name", MADE)
def test_every_command_is_of_the_definition(name: str) -> None:
    """All files take their commands from one table, so that every host does the same."""
    assert set(scripts(jobs(name))) <= set(COMMANDS.values())


def test_the_image_is_built_from_the_source_beside_it() -> None:
    """It copies what the tests of the wheel build from, installs no package of an index by name, and drops root."""
    lines = delivered()["Dockerfile"].splitlines()
    folder = "/usr/src/syncengine"
    copied = [line.split()[1:] for line in lines if line.startswith("COPY ")]
    assert copied == [[*BUILT, f"{folder}/"], ["syncengine", f"{folder}/syncengine"]]
    (install,) = (line for line in lines if "pip install" in line)
    assert install == f'RUN pip install --no-cache-dir "{folder}[postgresql]"'
    assert lines.index("USER syncengine") > lines.index(install)


# --- the repository's own


def test_an_action_is_the_same_commit_wherever_it_is_used() -> None:
    """Our workflows, the action and the workflows for users pin the same commit, with its version in a comment."""
    texts = [path.read_text(encoding="utf-8") for path in [*WORKFLOWS, ROOT / "action.yml"]]
    texts += [f"uses: {action}" for action in ACTIONS.values()]
    uses = [line.partition("uses: ")[2] for text in texts for line in text.splitlines() if "uses: " in line]
    pins = dict(re.fullmatch(r"([\w/-]+)@([0-9a-f]{40} # v\d+\.\d+\.\d+)", use).groups() for use in uses)  # type: ignore[union-attr] # each matches
    assert uses
    assert all(use == f"{action}@{pins[action]}" for use in uses for action in [use.partition("@")[0]])


def test_every_version_of_python_that_is_promised_is_tested() -> None:
    ci = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    versions = ["3.11", "3.12", "3.13", "3.14"]
    assert ci["jobs"]["test"]["strategy"]["matrix"]["python"] == versions
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.findall(r'requires-python = ">=(.+)"', text) == versions[:1]
    assert re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text) == versions


def test_a_release_has_the_notes_of_the_changelog(tmp_path: Path) -> None:
    """They are the changelog's section of the version, which is printed for later jobs. A tag that differs from the
    program's version is no release."""
    command = [sys.executable, str(ROOT / ".github/scripts/release_notes.py")]
    for tag, code, out in (("9.9.9", 1, ""), (__version__, 0, f"{__version__}\n")):
        done = subprocess.run([*command, tag, str(tmp_path / "notes")], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, tag in done.stderr) == (code, out, bool(code)), done.stderr
    text = (tmp_path / "notes").read_text(encoding="utf-8")
    assert "\n## " not in text
    assert text in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8") + "\n"

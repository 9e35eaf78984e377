"""The generated CI files fit the hosts' published schemas, and an analyser of workflows accepts them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from syncengine.tools.init import CI, EXAMPLES, starter_files
from syncengine.tools.init.jobs import (
    ACTIONS,
    COMMANDS,
    CONDITIONS,
    DELIVERED,
    UNCHOSEN,
    delivered,
    installation_of,
    laid,
)
from tests.cli.program import Project
from tests.support.git import git

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(sys.executable).parent
SCHEMAS = {
    ".github/workflows/syncengine.yml": "vendor.github-workflows",
    ".gitlab-ci.yml": "vendor.gitlab-ci",
    "action.yml": "vendor.github-actions",
}
PACKAGE = "firm-syncengine==2.0"
MADE = {CI[host]: starter_files(installation_of(PACKAGE), host)[CI[host]] for host in CI} | {
    "action.yml": delivered()["action.yml"]
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in MADE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("name", DELIVERED)
def test_the_files_of_the_repository_are_made_of_the_definition(name: str) -> None:
    """To change such a file, edit its template and write the text that this test expects."""
    assert (ROOT / name).read_text(encoding="utf-8") == delivered()[name]


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_ci_file_fits_the_published_schema(folder: Path, name: str) -> None:
    command = [str(PROGRAMS / "check-jsonschema"), "--builtin-schema", SCHEMAS[name], str(folder / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_schema_rejects_a_misspelt_key(folder: Path) -> None:
    """The schema rejects a misspelt key; otherwise the test above would prove nothing."""
    path = folder / ".github/workflows/syncengine.yml"
    path.write_text(path.read_text().replace("runs-on", "run-on"))
    command = [str(PROGRAMS / "check-jsonschema"), "--builtin-schema", SCHEMAS[CI["github"]], str(path)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1


def test_an_analyser_of_workflows_finds_nothing(folder: Path) -> None:
    """No template in a script, no action pinned by a tag, no unused permission, no secret where it is not needed."""
    assert _audited(folder) == (0, [])


@pytest.mark.parametrize(
    ("harm", "by", "code"),
    [
        ("  pull_request:\n", "  pull_request_target:\n", "dangerous-triggers"),
        ("run: syncengine fmt --check", 'run: echo "${{ github.head_ref }}"', "template-injection"),
        (ACTIONS["CHECKOUT"], "actions/checkout@v4", "unpinned-uses"),
        (", persist-credentials: false", "", "artipacked"),
        ("permissions: {}", "permissions: write-all", "excessive-permissions"),
    ],
)
def test_the_analyser_finds_planted_flaws(folder: Path, harm: str, by: str, code: str) -> None:
    """The analyser finds each planted flaw; otherwise the test above would prove nothing."""
    path = folder / ".github/workflows/syncengine.yml"
    assert harm in path.read_text()
    path.write_text(path.read_text().replace(harm, by, 1))
    status, codes = _audited(folder)
    assert status != 0
    assert code in codes


def _audited(folder: Path) -> tuple[int, list[str]]:
    command = [str(PROGRAMS / "zizmor"), "--offline", "--persona=pedantic", "--format=json", "--no-config", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, [finding["ident"] for finding in json.loads(done.stdout or "[]")]


def jobs(name: str) -> dict[str, Any]:
    document = yaml.safe_load(MADE[name])
    found: dict[str, Any] = document.get("jobs") or {k: v for k, v in document.items() if "script" in (v or {})}
    return found


def test_code_of_a_fork_gets_no_secrets() -> None:
    """No trigger gives secrets to a fork's code, and no job that runs such code has a secret."""
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
    """The action plans a fork's pull request like the job: without a state and without a secret."""
    steps = {each["name"]: each for each in yaml.safe_load(MADE["action.yml"])["runs"]["steps"] if "name" in each}
    plan = {step["name"]: step for step in jobs(CI["github"])["plan"]["steps"] if "name" in step}
    for name in ("Plan", "Plan of a fork"):
        assert (steps[name]["if"], steps[name]["run"]) == (plan[name]["if"], plan[name]["run"])
    assert "inputs.state" not in json.dumps(steps["Plan of a fork"])


def test_only_the_step_that_needs_a_secret_has_it() -> None:
    """Planning has a read-only state, applying has the API key, and publishing has only a token."""
    holders = {
        (job, step["name"]): sorted(step["env"])
        for job, body in jobs(CI["github"]).items()
        for step in body["steps"]
        if step.get("env")
    }
    writes = ["SYNCENGINE_API_KEY", "SYNCENGINE_STATE"]
    assert holders == {
        ("plan", "Plan"): ["MERGE_BASE", "SYNCENGINE_STATE"],
        ("plan", "Publish"): ["GITHUB_TOKEN"],
        ("apply", "Fetch the reviewed plans"): ["GITHUB_TOKEN"],
        ("apply", "Apply"): writes,
        ("apply", "Publish"): ["GITHUB_TOKEN"],
        ("reassert", "Reassert"): writes,
        ("drift", "Drift"): writes,
    }
    for job in ("plan", "drift"):
        assert "${{ secrets.SYNCENGINE_STATE_READER }}" in json.dumps(jobs(CI["github"])[job])
    scopes = {name: job.get("environment") for name, job in jobs(CI["gitlab"]).items()}
    access = {name: {"name": name, "action": "access"} for name in ("plan", "publish")}
    assert scopes == {
        **dict.fromkeys(("package", "check")),
        "plan": access["plan"],
        **dict.fromkeys(("publish", "reviewed", "report"), access["publish"]),
        **dict.fromkeys(("apply", "reassert"), "production"),
        "drift": {"name": "production", "action": "access"},
    }


def test_a_merge_queue_runs_the_plan_job() -> None:
    """The plan job also runs for merge groups; a required check that never reports would block the queue."""
    document = yaml.load(MADE[CI["github"]], yaml.BaseLoader)
    assert "merge_group" in document["on"]
    assert "github.event_name == 'merge_group'" in document["jobs"]["plan"]["if"]


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
    "VALIDATE_GITLAB": COMMANDS["CLEAN_CHECK_GITLAB"],
    "PLAN_GITLAB": COMMANDS["CLEAN_PLAN_GITLAB"],
    "APPLY_GITLAB": COMMANDS["CLEAN_APPLY_GITLAB"],
    "DRIFT_GITLAB": COMMANDS["CLEAN_DRIFT_GITLAB"],
}
"""The first line of each job that passes on what it has written also when it fails, by its last command."""
WRITTEN = re.compile(r" (?:>|tee|--dotenv|-o|--wheel-dir|--report) (?:json=)?\"?([$\w./-]+)")


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_job_writes_is_outside_of_the_checkout_or_removed_first(name: str) -> None:
    """Otherwise a committed file could pass for the job's output when its command cannot write it."""
    command = COMMANDS[name]
    files = WRITTEN.findall(command)
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
    """The files say where secrets are set up that the state's reader needs a role with SELECT only."""
    for host in CI.values():
        assert "for a role that may only SELECT" in " ".join(MADE[host].replace("#", " ").split())


@pytest.mark.parametrize("name", MADE)
def test_every_command_is_of_the_definition(name: str) -> None:
    """All files take their commands from one table, so that every host does the same."""
    document = yaml.safe_load(MADE[name])
    if name == "action.yml":
        scripts = [step["run"] for step in document["runs"]["steps"] if "run" in step]
    else:
        scripts = [s["run"] for job in jobs(name).values() for s in job.get("steps", ()) if "run" in s]
        scripts += [line for job in jobs(name).values() for line in job.get("script", ())]
    assert {script.strip() for script in scripts} <= set(COMMANDS.values())


def test_no_place_of_a_file_is_left_empty() -> None:
    for text in (*MADE.values(), *delivered().values()):
        assert not re.search(r"@[A-Z_]+@", text)
    assert laid("\n  @APPLY_GITHUB@\n").splitlines()[2].startswith("    if ")


def test_the_image_is_built_from_the_source_beside_it(tmp_path: Path) -> None:
    """The Dockerfile copies all that a build needs, installs no package of an index by name, and drops root."""
    lines = delivered()["Dockerfile"].splitlines()
    for line in lines:
        match line.split():
            case ["COPY", *sources, target]:
                for source in sources:
                    place = tmp_path / Path(target).relative_to("/usr/src/syncengine")
                    place = place if len(sources) == 1 else place / source
                    copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
                    copy(ROOT / source, place)
    build = "import setuptools.build_meta as backend; backend.build_wheel('wheels')"
    done = subprocess.run([sys.executable, "-c", build], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "wheels").iterdir()
    assert wheel.name.startswith("syncengine_connect-")
    installs = [line for line in lines if "pip install" in line]
    assert installs == ['RUN pip install --no-cache-dir "/usr/src/syncengine[postgresql]"']
    assert lines.index("USER syncengine") > lines.index(installs[0])


def test_the_action_installs_the_version_that_a_workflow_pins() -> None:
    """The action installs the program from its own commit."""
    (step,) = (
        each for each in yaml.safe_load(delivered()["action.yml"])["runs"]["steps"] if each.get("name") == "Install"
    )
    assert step["env"] == {"SYNCENGINE_PACKAGE": "${{ github.action_path }}[postgresql]"}


# --- init --ci


@pytest.mark.parametrize("host", CI)
def test_a_new_project_has_the_jobs_of_its_host(tmp_path: Path, host: str) -> None:
    """The jobs are written where the host reads them, without files for other hosts."""
    project = Project(tmp_path, "sandbox")
    done = project.run("init", "made", "--ci", host, "--install", PACKAGE)
    assert done.code == 0, done.err
    assert (tmp_path / "made" / CI[host]).read_text() == MADE[CI[host]]
    assert not (tmp_path / "made" / "ci").exists()
    assert not any((tmp_path / "made" / other).exists() for key, other in CI.items() if key != host)


@pytest.mark.parametrize("host", CI)
def test_a_project_that_exists_gets_jobs_and_keeps_its_files(tmp_path: Path, host: str) -> None:
    project = Project(tmp_path, "sandbox")
    before = project.files()
    assert project.run("init", "--ci", host, "--install", PACKAGE).code == 0
    assert project.files() == {**before, CI[host]: MADE[CI[host]].encode()}
    (tmp_path / CI[host]).write_text("mine")
    done = project.run("init", "--ci", host, "--install", PACKAGE)
    assert (done.code, "already exists and was kept" in done.err) == (0, True)
    assert (tmp_path / CI[host]).read_text() == "mine"


def test_jobs_are_not_written_where_no_host_reads_them(tmp_path: Path) -> None:
    """`init --ci` in a subfolder of a repository fails and writes nothing."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    done = Project(tmp_path, "sandbox").run("init", "below", "--ci", "github", "--install", PACKAGE)
    assert (done.code, "at the root of a repository" in done.err) == (1, True)
    assert not (tmp_path / "below").exists()


def test_examples_are_the_files_that_init_writes() -> None:
    """Without a chosen host, both examples start with comments: no host runs them, and how to change that."""
    files = starter_files(UNCHOSEN)
    for host, name in EXAMPLES.items():
        chosen = files[name].replace('SYNCENGINE_PACKAGE: ""', 'SYNCENGINE_PACKAGE: "firm-syncengine[postgresql]==2.0"')
        assert chosen.endswith(MADE[CI[host]])
        head = chosen.removesuffix(MADE[CI[host]])
        assert all(line.startswith("#") for line in head.splitlines())
        assert head.startswith("# An example to read: no host runs it here.")
        assert f"syncengine init --ci {host} --install" in head
        assert CI[host] in head


def test_examples_name_a_branch_and_leave_a_host_with_jobs_alone(tmp_path: Path) -> None:
    """The GitHub example names the branch `main`; there is no example for a host that already has jobs."""
    project = Project(tmp_path, "sandbox")
    assert project.run("init", "made").code == 0
    document = yaml.load((tmp_path / "made" / EXAMPLES["github"]).read_text(), yaml.BaseLoader)
    assert document["on"]["push"] == {"branches": ["main"]}
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / CI["gitlab"]).write_text("mine")
    assert project.run("init", "other").code == 0
    assert [file.name for file in (tmp_path / "other/ci").iterdir()] == ["github-actions.yml"]


@pytest.mark.parametrize("host", CI)
@pytest.mark.parametrize("before", ["firm-syncengine==1.0", "https://pypi.example.com/simple/"])
def test_the_output_says_when_a_kept_file_installs_another_package(tmp_path: Path, host: str, before: str) -> None:
    """When `--install` differs from a kept file, the output says how to change the file."""
    project = Project(tmp_path, "sandbox")
    assert project.run("init", "--ci", host, "--install", before).code == 0
    assert "was not changed" not in project.run("init", "--ci", host, "--install", before).err
    err = project.run("init", "--ci", host, "--install", PACKAGE).err
    assert f"{CI[host]} was not changed." in err
    assert "firm-syncengine==2.0" not in err
    assert "edit SYNCENGINE_PACKAGE in it" in err


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
    project = Project(tmp_path, "sandbox")
    git(tmp_path, "init", "-q")
    tree = git(tmp_path, "commit-tree", "-m", "x", git(tmp_path, "write-tree"))
    for name in branches:
        git(tmp_path, "update-ref", f"refs/heads/{name}", tree)
    if origin:
        git(tmp_path, "symbolic-ref", "refs/remotes/origin/HEAD", f"refs/remotes/origin/{origin}")
    done = project.run("init", "--ci", "github", "--install", PACKAGE)
    document = yaml.load((tmp_path / CI["github"]).read_text(), yaml.BaseLoader)
    assert document["on"]["push"] == {"branches": [branch]}
    assert f"only the branch {origin or branch}" in done.err


STEPS = {
    "github": ["SYNCENGINE_STATE_READER", "create `production`", ".github/workflows/syncengine.yml", "`Plan`"],
    "gitlab": ["GITLAB_TOKEN", "schedules", ".gitlab-ci.yml", "Pipelines must succeed", "oldest_first"],
}


@pytest.mark.parametrize("host", CI)
def test_init_lists_what_to_set_up_in_order(tmp_path: Path, host: str) -> None:
    """`init` lists service, state, adopt and first apply, then secrets, environment and the required check."""
    err = Project(tmp_path, "sandbox").run("init", "made", "--ci", host, "--install", PACKAGE).err
    order = ["Next:", "baseUrl", "state:", "made adopt", "made apply --new-state", *STEPS[host]]
    places = [err.index(word) for word in order]
    assert places == sorted(places)
    assert "firm-syncengine is your team's name" in err
    wheel = "vendor/x-1-py3-none-any.whl"
    err = Project(tmp_path, "sandbox").run("init", "with", "--ci", host, "--install", wheel).err
    assert f"Commit {CI[host]} and {wheel}" in err

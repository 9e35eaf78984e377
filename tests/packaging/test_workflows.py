"""The generated CI files and the repository's own fit published schemas, and an analyser of workflows accepts them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from syncengine import __version__
from syncengine.tools.init import CI, starter_files
from syncengine.tools.init.jobs import ACTIONS, COMMANDS, CONDITIONS, DELIVERED, delivered, installation_of, laid

from .checkers import flaws, misfits
from .test_wheel import BUILT

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
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
    assert misfits(SCHEMAS[name], folder / name) == ""


@pytest.mark.parametrize("path", [*WORKFLOWS, *FORMS], ids=lambda path: path.stem)
def test_a_file_of_the_repository_fits_the_published_schema(path: Path) -> None:
    """Workflows, and the forms of issues, of which every field has an id and a label."""
    form = f"vendor.github-issue-{'config' if path.stem == 'config' else 'forms'}"
    assert misfits(form if path in FORMS else SCHEMAS[CI["github"]], path) == ""


def test_a_schema_rejects_a_misspelt_key(folder: Path) -> None:
    """Otherwise the tests above would prove nothing."""
    path = folder / CI["github"]
    path.write_text(path.read_text().replace("runs-on", "run-on"))
    assert misfits(SCHEMAS[CI["github"]], path)


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


def test_the_analyser_finds_planted_flaws(folder: Path) -> None:
    """Otherwise the test above would prove nothing."""
    text = MADE[CI["github"]]
    for harm, by in FLAWS.values():
        assert harm in text
        text = text.replace(harm, by, 1)
    (folder / CI["github"]).write_text(text)
    assert set(FLAWS) <= set(flaws(folder))


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
    """It plans a fork's pull request like the job, and installs the program from its own commit."""
    steps = {each["name"]: each for each in yaml.safe_load(MADE["action.yml"])["runs"]["steps"] if "name" in each}
    plan = {step["name"]: step for step in jobs(CI["github"])["plan"]["steps"] if "name" in step}
    for name in ("Plan", "Plan of a fork"):
        assert (steps[name]["if"], steps[name]["run"]) == (plan[name]["if"], plan[name]["run"])
    assert "inputs.state" not in json.dumps(steps["Plan of a fork"])
    assert steps["Install"]["env"] == {"SYNCENGINE_PACKAGE": "${{ github.action_path }}[postgresql]"}


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


def test_the_image_is_built_from_the_source_beside_it() -> None:
    """It copies what the tests of the wheel build from, installs no package of an index by name, and drops root."""
    lines = delivered()["Dockerfile"].splitlines()
    copied = [line.split()[1:] for line in lines if line.startswith("COPY ")]
    folder = "/usr/src/syncengine"
    assert copied == [[*BUILT, f"{folder}/"], ["syncengine", f"{folder}/syncengine"]]
    installs = [line for line in lines if "pip install" in line]
    assert installs == ['RUN pip install --no-cache-dir "/usr/src/syncengine[postgresql]"']
    assert lines.index("USER syncengine") > lines.index(installs[0])


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
    """CI tests every version from the minimum in `requires-python` on."""
    ci = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    versions = ci["jobs"]["test"]["strategy"]["matrix"]["python"]
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.findall(r'requires-python = ">=(.+)"', text) == versions[:1]
    assert re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text) == versions
    assert versions == ["3.11", "3.12", "3.13", "3.14"]


def test_a_release_has_the_notes_of_the_changelog(tmp_path: Path) -> None:
    """They are the changelog's section of the version, which is printed for later jobs. A tag that differs from the
    program's version is no release."""

    def notes(tag: str) -> subprocess.CompletedProcess[str]:
        script = ROOT / ".github/scripts/release_notes.py"
        command = [sys.executable, str(script), tag, str(tmp_path / "notes")]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = notes("9.9.9")
    assert (done.returncode, "9.9.9" in done.stderr) == (1, True)
    done = notes(__version__)
    assert (done.returncode, done.stdout) == (0, f"{__version__}\n"), done.stderr
    text = (tmp_path / "notes").read_text(encoding="utf-8")
    assert "\n## " not in text
    assert text in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8") + "\n"

"""Define the commands and actions of CI jobs once, and insert them into the files of both hosts. Pure.

The files contain `@NAME@` in place of a command, an action, a condition, the branch or the package variables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.resources import files

from syncengine.tools.init.installation import EXTRA, UNCHOSEN, Installation

PIP = "python -I -m pip"
"""pip, isolated from modules in the checkout, which would be imported instead of its own."""
PACKAGE_NAMED = '"${SYNCENGINE_PACKAGE:?is empty, name one by syncengine init --ci HOST --install REQUIREMENT}"'
"""The package, or a sentence in the log of a job whose file names none."""
INDEX = f"{PIP} install {PACKAGE_NAMED}"
TEMP = "$RUNNER_TEMP"
"""GitHub's folder for the files of a job. A branch can put nothing there, so that no committed file passes for ours.

GitLab passes on only files in the checkout. There, each file is removed before it is written: else a branch that keeps
its command from writing it could commit a forged one.
"""
EXACT = "--detailed-exitcode || [ $? -eq 2 ]"
"""The end of a plan command whose result is always published: changes pass; a denial and a closed gate fail the job."""


def _apply(temp: str) -> str:
    """Return the commands that apply with the reviewed plans. A weekly reassertion may hold the lock for long."""
    return f"""for plan in {temp}reviewed/*.json; do
  if [ -e "$plan" ]; then set -- "$@" --reviewed "$plan"; fi
done
syncengine apply -y "$@" --lock-timeout 30m --report json={temp}report.json"""


COMMANDS: Mapping[str, str] = {
    "INSTALL": INDEX,
    "WHEELS": f"rm -rf .syncengine/wheels; {PIP} wheel --wheel-dir .syncengine/wheels {PACKAGE_NAMED}",
    "INSTALL_WHEELS": (
        'test -z "$(git ls-files .syncengine)" || exit 1; '  # a committed wheel would be installed beside the artifact
        f"{PIP} install --no-index --no-deps .syncengine/wheels/*.whl"
    ),
    "FMT": "syncengine fmt --check",
    "TEST": "syncengine test",
    "VALIDATE_GITLAB": "rm -rf gl-code-quality.json; syncengine validate --format gitlab > gl-code-quality.json",
    "PLAN_GITHUB": (
        f'rm -f "{TEMP}/plan.json"; syncengine plan --base "${{MERGE_BASE:-origin/$GITHUB_BASE_REF}}"'
        f' --report json="{TEMP}/plan.json" {EXACT}'
    ),
    "PLAN_FORK_GITHUB": (
        f'rm -f "{TEMP}/plan.json"; syncengine plan --base "origin/$GITHUB_BASE_REF" --no-state'
        f' --report json="{TEMP}/plan.json"'
    ),
    "FETCH_BASE_GITLAB": 'git fetch --quiet origin "$CI_MERGE_REQUEST_TARGET_BRANCH_NAME"',
    "PLAN_GITLAB": f"rm -rf plan.json; syncengine plan --base FETCH_HEAD --report json=plan.json {EXACT}",
    "PLAN_FORK_GITLAB": 'syncengine plan --base "$CI_MERGE_REQUEST_DIFF_BASE_SHA" --no-state',
    "PUBLISH_PLAN_GITHUB": f'syncengine publish "{TEMP}/plan.json" --to github',
    "PUBLISH_PLAN_GITLAB": "rm -rf plan.env; syncengine publish plan.json --to gitlab --dotenv plan.env",
    "REVIEWED_GITHUB": f'syncengine reviewed --from github -o "{TEMP}/reviewed"',
    "REVIEWED_GITLAB": "rm -rf reviewed; syncengine reviewed --from gitlab -o reviewed",
    "APPLY_GITHUB": _apply(f'"{TEMP}"/'),
    "APPLY_GITLAB": f"rm -rf report.json\n{_apply('')}",
    "PUBLISH_REPORT_GITHUB": f'syncengine publish "{TEMP}/report.json" --to github --key applied',
    "PUBLISH_REPORT_GITLAB": "syncengine publish report.json --to gitlab --key applied",
    "REASSERT": "syncengine apply -y --reassert --no-delete --lock-timeout 30m",
    "DRIFT_GITHUB": 'syncengine drift --format markdown --detailed-exitcode >> "$GITHUB_STEP_SUMMARY"',
    "DRIFT_GITLAB": (
        "rm -rf drift.markdown; syncengine drift --format markdown --detailed-exitcode | tee drift.markdown"
    ),
}
ACTIONS: Mapping[str, str] = {
    "CHECKOUT": "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1",
    "SETUP_PYTHON": "actions/setup-python@5fda3b95a4ea91299a34e894583c3862153e4b97 # v7.0.0",
    "UPLOAD_ARTIFACT": "actions/upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f # v7.0.0",
}
"""Actions pinned to the commit of a version, because a tag can be moved."""
OWN = (
    "github.event.pull_request.head.repo.full_name == github.repository"
    " && github.event.pull_request.user.login != 'dependabot[bot]'"
)
"""The condition that a pull request is given the secrets: not one of a fork, or of GitHub's own bot.

It compares names, since `fork` is also true where the whole repository is a fork. The author counts, since whoever
repeats a run becomes its actor.
"""
CONDITIONS: Mapping[str, str] = {
    "OWN": OWN,
    "PLANNED": f"github.event_name == 'merge_group' || ({OWN})",
    "FOREIGN": f"github.event_name != 'merge_group' && !({OWN})",
}
DELIVERED = ("action.yml", "Dockerfile")
"""Files of this program's own repository that are built from the same definitions."""
_NAME = re.compile(r"(?:(?<=\n)( +))?@([A-Z_]+)@")
"""A placeholder, with its indentation if it begins a line, which all lines of a multi-line command receive."""


def laid(text: str, installation: Installation = UNCHOSEN, branch: str = "main") -> str:
    """Return a CI file with its placeholders replaced.

    `installation` is the package that its jobs install; a push to `branch` applies.
    """
    words = {**WORDS, "PACKAGE": installation.variables(), "BRANCH": _pattern(branch)}
    return _NAME.sub(lambda name: _indented(name[1] or "", words[name[2]]), text)


def _pattern(branch: str) -> str:
    """Return a branch in double quotes, as a pattern that matches no other."""
    return json.dumps(re.sub(r"[+!]", r"\\\g<0>", branch))


def _indented(blanks: str, words: str) -> str:
    return blanks + words.replace("\n", f"\n{blanks}")


WORDS = {**COMMANDS, **ACTIONS, **CONDITIONS, "EXTRA": EXTRA}


def delivered() -> dict[str, str]:
    """Return the CI files of this program's own repository, by name."""
    folder = files("syncengine.tools.init").joinpath("delivery")
    return {name: laid(folder.joinpath(name).read_text(encoding="utf-8")) for name in DELIVERED}

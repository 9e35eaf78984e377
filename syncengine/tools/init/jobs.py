"""Define the commands and actions of CI jobs once, and insert them into the files of both hosts. Pure.

The files contain `@NAME@` in place of a command or action, and the line `@PACKAGE@` in place of the package variables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files

from syncengine.tools.init.installation import DEFAULT, EXTRA, Installation

PIP = "python -I -m pip"
"""pip, isolated from modules in the checkout, which would be imported instead of its own."""
INDEX = f'{PIP} install "$SYNCENGINE_PACKAGE"'
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
    "WHEELS": f'rm -rf .syncengine/wheels; {PIP} wheel --wheel-dir .syncengine/wheels "$SYNCENGINE_PACKAGE"',
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
        f'syncengine plan --base "origin/$GITHUB_BASE_REF" --no-state --report json="{TEMP}/plan.json"'
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
    "CHECKOUT": "actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2",
    "SETUP_PYTHON": "actions/setup-python@a26af69be951a213d495a4c3e4e4022e16d87065 # v5.6.0",
    "UPLOAD_ARTIFACT": "actions/upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02 # v4.6.2",
}
"""Actions pinned to the commit of a version, because a tag can be moved."""
DELIVERED = ("action.yml", "Dockerfile")
"""Files of this program's own repository that are built from the same definitions."""
PACKAGE = re.compile(r"( *)@PACKAGE@\n")
_NAME = re.compile(r"(?:(?<=\n)( +))?@([A-Z_]+)@")
"""A placeholder, with its indentation if it begins a line, which all lines of a multi-line command receive."""


def laid(text: str, installation: Installation = DEFAULT) -> str:
    """Return a CI file with its placeholders replaced; `installation` is the package that its jobs install."""
    text = PACKAGE.sub(lambda line: installation.variables(line[1]), text)
    return _NAME.sub(lambda name: _indented(name[1] or "", WORDS[name[2]]), text)


def _indented(blanks: str, words: str) -> str:
    return blanks + words.replace("\n", f"\n{blanks}")


WORDS = {**COMMANDS, **ACTIONS, "EXTRA": EXTRA}


def delivered() -> dict[str, str]:
    """Return the CI files of this program's own repository, by name."""
    folder = files("syncengine.tools.init").joinpath("delivery")
    return {name: laid(folder.joinpath(name).read_text(encoding="utf-8")) for name in DELIVERED}

"""Define the commands and actions of CI jobs once, and insert them into the files of both hosts. Pure.

The files contain `@NAME@` in place of a command or action, and the line `@PACKAGE@` in place of the package variables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files

from syncengine.tools.init.installation import DEFAULT, PINNED, Installation

INDEX = 'python -m pip install "$SYNCENGINE_PACKAGE"'
FAILING = "--report json=plan.json --detailed-exitcode || [ $? -eq 2 ]"
"""The end of a plan command whose result is always published: changes pass; a denial and a closed gate fail the job."""
COMMANDS: Mapping[str, str] = {
    "INSTALL": INDEX,
    "WHEELS": 'pip wheel --wheel-dir .syncengine/wheels "$SYNCENGINE_PACKAGE"',
    "INSTALL_WHEELS": "pip install --no-index --no-deps .syncengine/wheels/*.whl",
    "FMT": "syncengine fmt --check",
    "TEST": "syncengine test",
    "VALIDATE_GITLAB": "syncengine validate --format gitlab > gl-code-quality.json",
    "PLAN_GITHUB": f'syncengine plan --base "origin/$GITHUB_BASE_REF" {FAILING}',
    "PLAN_FORK_GITHUB": 'syncengine plan --base "origin/$GITHUB_BASE_REF" --no-state --report json=plan.json',
    "FETCH_BASE_GITLAB": 'git fetch --quiet origin "$CI_MERGE_REQUEST_TARGET_BRANCH_NAME"',
    "PLAN_GITLAB": f"syncengine plan --base FETCH_HEAD {FAILING}",
    "PLAN_FORK_GITLAB": 'syncengine plan --base "$CI_MERGE_REQUEST_DIFF_BASE_SHA" --no-state',
    "PUBLISH_PLAN_GITHUB": "syncengine publish plan.json --to github",
    "PUBLISH_PLAN_GITLAB": "syncengine publish plan.json --to gitlab --dotenv plan.env",
    "REVIEWED_GITHUB": "syncengine reviewed --from github -o reviewed",
    "REVIEWED_GITLAB": "syncengine reviewed --from gitlab -o reviewed",
    "APPLY": """for plan in reviewed/*.json; do
  if [ -e "$plan" ]; then set -- "$@" --reviewed "$plan"; fi
done
syncengine apply -y "$@" --report json=report.json""",
    "PUBLISH_REPORT_GITHUB": "syncengine publish report.json --to github --key applied",
    "PUBLISH_REPORT_GITLAB": "syncengine publish report.json --to gitlab --key applied",
    "REASSERT": "syncengine apply -y --reassert --no-delete",
    "DRIFT_GITHUB": 'syncengine drift --format markdown --detailed-exitcode >> "$GITHUB_STEP_SUMMARY"',
    "DRIFT_GITLAB": "syncengine drift --format markdown --detailed-exitcode | tee drift.markdown",
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


WORDS = {**COMMANDS, **ACTIONS, "PINNED": PINNED}


def delivered() -> dict[str, str]:
    """Return the CI files of this program's own repository, by name."""
    folder = files("syncengine.tools.init").joinpath("delivery")
    return {name: laid(folder.joinpath(name).read_text(encoding="utf-8")) for name in DELIVERED}

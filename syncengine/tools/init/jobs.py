"""What CI jobs run and install, defined once for the files of both hosts. Pure.

The files contain `@NAME@` in place of a command, an action, a condition, the branch or the package variables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from syncengine import DISTRIBUTION, __version__
from syncengine.document.text import CONTROL

EXTRA = "postgresql"
"""The extra that installs the driver for a shared PostgreSQL state."""
STRANGER = "syncengine"
"""The name of an unrelated library on the package index, for file synchronization."""
_WHEEL = f"{DISTRIBUTION.replace('-', '_')}-{__version__}-py3-none-any.whl"
WAYS = {
    "A name that your team owns on a package index, with the version": f"firm-syncengine=={__version__}",
    "A Git repository with the commit": f"git+https://git.example.com/tools/{STRANGER}.git@COMMIT",
    "A wheel in your repository, or at a URL": f"vendor/{_WHEEL}",
}
"""The ways to say what is installed, each with an example. No public index has this program."""

PLACEHOLDER = "REQUIREMENT"
"""The word for the argument in help and documents, which somebody may paste."""
_TEXT = re.compile(r"[A-Za-z0-9._/][A-Za-z0-9._/:@+=<>!~,\[\]#%&?*^ -]*")
"""Text that is safe in quoted YAML, a quoted shell word and the expressions of CI servers, and is not an option."""
_URL = re.compile(r"[a-z+]+://")
_ARCHIVE = re.compile(r".+\.(whl|tar\.gz|zip)(\[[\w, .-]*\])?")
_REQUIREMENT = re.compile(r"([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?) *(?:\[([\w, .-]*)\])? *([=<>!~@].*)?", re.ASCII)
_EXACT = re.compile(r"== *[\w.!+]+", re.ASCII)
_GIT = re.compile(r"git\+(https|ssh)")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class Installation(NamedTuple):
    """The argument of `pip install`, empty if nobody has chosen one, and the index to use instead of pip's default."""

    package: str
    mirror: str | None = None

    def variables(self) -> str:
        """Return lines of YAML: environment variables, with each value in double quotes."""
        values = {"SYNCENGINE_PACKAGE": self.package, **({"PIP_INDEX_URL": self.mirror} if self.mirror else {})}
        return "\n".join(f"{name}: {json.dumps(value)}" for name, value in values.items())


PINNED = f"{DISTRIBUTION}[{EXTRA}]=={__version__}"
UNCHOSEN = Installation("")


def installation_of(text: str) -> Installation:
    """Parse a requirement, the path of a wheel, or the URL of an archive, a Git commit or a package index.

    Raise `ValueError`, with a message, for text that pip would reject, that must not be committed, or that may install
    something else tomorrow.
    """
    if text == PLACEHOLDER:
        raise ValueError("write what the jobs install in its place; without --install, the ways to say it are printed")
    if not _TEXT.fullmatch(text):
        raise ValueError("expected a requirement, a path or a URL, without quotes, `$`, `;` or a leading `-`")
    if _URL.match(text):
        path = urlsplit(_checked(text)).path
        if text.startswith("git+") or _ARCHIVE.fullmatch(path):
            return Installation(f"{DISTRIBUTION}[{EXTRA}] @ {text}")
        return Installation(PINNED, text)
    if _ARCHIVE.fullmatch(text) and "://" not in text:
        if PurePosixPath(text).is_absolute() or ".." in PurePosixPath(text).parts:
            raise ValueError("jobs find a wheel only in the repository: commit it, and give its path from the root")
        return Installation(text if text.endswith("]") else f"{text}[{EXTRA}]")
    found = _REQUIREMENT.fullmatch(text)
    if found is None:
        raise ValueError("expected the path of a wheel, a URL or a requirement, such as NAME==VERSION")
    name, extras, rest = found[1], found[2] or "", found[3] or ""
    named = f"{name}[{','.join(sorted({EXTRA, *filter(None, re.split(r'[ ,]+', extras))}))}]"  # a shared state needs it
    if rest.startswith("@"):
        return Installation(f"{named} @ {_checked(rest[1:].strip())}")
    plain = re.sub(r"[-_.]+", "-", name).lower()  # names that an index takes for the same
    if plain == STRANGER:
        message = f"`{STRANGER}` is another project's library on the package index"
        raise ValueError(f"{message}: name a package of your own, a Git URL with @COMMIT, or a wheel")
    if plain == DISTRIBUTION:
        rest = rest or f"=={__version__}"
    if not _EXACT.fullmatch(rest):
        raise ValueError(f"jobs would install another version tomorrow: write {name}==VERSION")
    return Installation(named + rest)


def _checked(url: str) -> str:
    if " " in url or CONTROL.search(unquote(url)):
        raise ValueError("the URL contains a blank or a control character, perhaps as %0A: remove it")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ValueError("the URL is invalid") from None
    if parts.password or (parts.username and not parts.scheme.endswith("ssh")):
        raise ValueError("a password or token in the URL would be committed: keep it in a secret, like pip's .netrc")
    if parts.query:
        raise ValueError("the part after `?` may be a token, and would be committed: give a URL without it")
    if _GIT.fullmatch(parts.scheme):
        if not _COMMIT.fullmatch(parts.path.rpartition("@")[2]):
            raise ValueError("a branch or tag may be another commit tomorrow: end the URL in @COMMIT, its whole id")
    elif parts.scheme != "https":
        raise ValueError(f"the URL starts with {parts.scheme}: https is expected, or a repository like git+https")
    return url


# --- the files

PIP = "python -I -m pip"
"""pip, isolated from modules in the checkout, which would be imported instead of its own."""
PACKAGE_NAMED = '"${SYNCENGINE_PACKAGE:?is empty, name one by syncengine init --ci HOST --install REQUIREMENT}"'
"""The package, or a sentence in the log of a job whose file names none."""
INDEX = f"{PIP} install {PACKAGE_NAMED}"
TEMP = "$RUNNER_TEMP"
"""GitHub's folder for the files of a job. A branch can put nothing there, so that no committed file passes for ours.

GitLab passes on only files in the checkout. There, each file is removed before it is written: else a branch that keeps
its command from writing it could commit a forged one. Where a job that fails passes it on, too, that is its first line.
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
    "CLEAN_CHECK_GITLAB": "rm -rf gl-code-quality.json",
    "VALIDATE_GITLAB": "syncengine validate --format gitlab > gl-code-quality.json",
    "PLAN_GITHUB": (
        f'rm -f "{TEMP}/plan.json"; syncengine plan --base "${{MERGE_BASE:-origin/$GITHUB_BASE_REF}}"'
        f' --report json="{TEMP}/plan.json" {EXACT}'
    ),
    "PLAN_FORK_GITHUB": (
        f'rm -f "{TEMP}/plan.json"; syncengine plan --base "origin/$GITHUB_BASE_REF" --no-state'
        f' --report json="{TEMP}/plan.json"'
    ),
    "CLEAN_PLAN_GITLAB": "rm -rf plan.json",
    "FETCH_BASE_GITLAB": 'git fetch --quiet origin "$CI_MERGE_REQUEST_TARGET_BRANCH_NAME"',
    "PLAN_GITLAB": f"syncengine plan --base FETCH_HEAD --report json=plan.json {EXACT}",
    "PLAN_FORK_GITLAB": 'syncengine plan --base "$CI_MERGE_REQUEST_DIFF_BASE_SHA" --no-state',
    "PUBLISH_PLAN_GITHUB": f'syncengine publish "{TEMP}/plan.json" --to github',
    "PUBLISH_PLAN_GITLAB": "rm -rf plan.env; syncengine publish plan.json --to gitlab --dotenv plan.env",
    "REVIEWED_GITHUB": f'syncengine reviewed --from github -o "{TEMP}/reviewed"',
    "REVIEWED_GITLAB": "rm -rf reviewed; syncengine reviewed --from gitlab -o reviewed",
    "APPLY_GITHUB": _apply(f'"{TEMP}"/'),
    "CLEAN_APPLY_GITLAB": "rm -rf report.json",
    "APPLY_GITLAB": _apply(""),
    "PUBLISH_REPORT_GITHUB": f'syncengine publish "{TEMP}/report.json" --to github --key applied',
    "PUBLISH_REPORT_GITLAB": "syncengine publish report.json --to gitlab --key applied",
    "REASSERT": "syncengine apply -y --reassert --no-delete --lock-timeout 30m",
    "DRIFT_GITHUB": 'syncengine drift --format markdown --detailed-exitcode >> "$GITHUB_STEP_SUMMARY"',
    "CLEAN_DRIFT_GITLAB": "rm -rf drift.markdown",
    "DRIFT_GITLAB": "syncengine drift --format markdown --detailed-exitcode | tee drift.markdown",
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
    pattern = json.dumps(re.sub(r"[+!]", r"\\\g<0>", branch))  # hosts read `+` and `!` as a pattern
    words = {**WORDS, "PACKAGE": installation.variables(), "BRANCH": pattern}

    def word(found: re.Match[str]) -> str:
        blanks = found[1] or ""
        return blanks + words[found[2]].replace("\n", f"\n{blanks}")

    return _NAME.sub(word, text)


WORDS = {**COMMANDS, **ACTIONS, **CONDITIONS, "EXTRA": EXTRA}


def delivered() -> dict[str, str]:
    """Return the CI files of this program's own repository, by name."""
    folder = files("syncengine.tools.init").joinpath("delivery")
    return {name: laid(folder.joinpath(name).read_text(encoding="utf-8")) for name in DELIVERED}

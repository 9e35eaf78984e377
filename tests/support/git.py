"""Git as an author of manifests uses it, whatever this machine sets."""

import os
import subprocess
from pathlib import Path

AUTHOR = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.com",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "init.defaultBranch=main", *words]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **AUTHOR}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (words, done.stderr, done.stdout)
    return done.stdout.strip()


def commit_all(folder: Path, message: str = "a change") -> str:
    """Commit whatever there is, even nothing, and return the commit."""
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")


def bare(folder: Path, *words: str) -> Path:
    git(folder.parent, "init", "-q", "--bare", *words, str(folder))
    return folder

"""Programs that check files of others: against published schemas, and for flaws of workflows."""

import json
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(sys.executable).parent


def misfits(schema: str, path: Path) -> str:
    """What does not fit the published schema of that name; empty if all of the file does."""
    command = [str(PROGRAMS / "check-jsonschema"), "--builtin-schema", schema, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode else ""


def flaws(*paths: Path) -> list[str]:
    """The codes of flaws in workflows: a template in a script, an action pinned by a tag, an unused permission..."""
    options = ["--offline", "--persona=pedantic", "--no-progress", "--no-config", "--format=json"]
    done = subprocess.run(
        [str(PROGRAMS / "zizmor"), *options, *map(str, paths)], capture_output=True, text=True, check=False
    )
    found = [finding["ident"] for finding in json.loads(done.stdout)]
    assert bool(found) == bool(done.returncode), done.stderr
    return found

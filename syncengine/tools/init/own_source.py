"""Where this very program was installed from → the ways to say what jobs install."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from syncengine import DISTRIBUTION
from syncengine.project.git import pushed_commit
from syncengine.tools.init.installation import GIT_WAY, WAYS, installation_of


def ways() -> dict[str, str]:
    """Return the ways with an example of each; that of a Git repository is the one this program is from, if known."""
    try:
        recorded = json.loads(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        recorded = {}
    own = source_of(recorded)
    return {**WAYS, **({GIT_WAY: own} if own else {})}


def source_of(recorded: Mapping[str, Any]) -> str | None:
    """Return `git+URL@COMMIT` of the repository or clone that pip has recorded, if jobs can fetch it, else `None`."""
    url, vcs = str(recorded.get("url", "")), recorded.get("vcs_info", {})
    if vcs.get("vcs") == "git":
        return _accepted(url, str(vcs.get("commit_id")))
    if not url.startswith("file:") or "dir_info" not in recorded:
        return None
    found = pushed_commit(Path(url2pathname(urlsplit(url).path)))
    return None if found is None else _accepted(*found)


def _accepted(remote: str, commit: str) -> str | None:
    """Return a URL that `--install` accepts, or `None`."""
    if "://" not in remote and "@" in remote.partition(":")[0]:
        remote = f"ssh://{remote.replace(':', '/', 1)}"
    with suppress(ValueError):
        installation_of(source := f"git+{remote}@{commit}")
        return source
    return None

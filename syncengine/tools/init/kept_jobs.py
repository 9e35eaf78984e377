"""Read from a CI file that exists what its jobs install."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Mapping, Scalar
from syncengine.document.reader import read
from syncengine.tools.init.installation import Installation, installation_of


def installed_by(file: Path) -> Installation | None:
    """Return what the variables of a CI file name, or `None` if none does, or one that must not be repeated."""
    for root in read(file.read_bytes(), Collector(file.name)).roots if file.is_file() else ():
        for section in ("env", "variables"):
            variables = root.get(section) if isinstance(root, Mapping) else None
            if not isinstance(variables, Mapping):
                continue
            package, mirror = (variables.get(name) for name in ("SYNCENGINE_PACKAGE", "PIP_INDEX_URL"))
            if isinstance(package, Scalar):
                with suppress(ValueError):  # as with a token in its URL
                    index = installation_of(mirror.text).mirror if isinstance(mirror, Scalar) else None
                    return Installation(installation_of(package.text).package, index)
    return None

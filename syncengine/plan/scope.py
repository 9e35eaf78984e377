"""The user's selection of the changes that a plan may contain. Pure."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterable
from pathlib import PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from syncengine.resource import Key, Source, exactly


class Scope(Struct, frozen=True, gc=False):
    """The limits on a plan's changes: globs of addresses, paths of manifests (relative, POSIX), and `no_delete`."""

    paths: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    no_delete: bool = False

    @property
    def whole(self) -> bool:
        """Whether the scope is everything, without selection or exclusion and with removals."""
        return not (self.paths or self.targets or self.excludes or self.no_delete)

    @property
    def selective(self) -> bool:
        return bool(self.paths or self.targets or self.excludes)

    def of(self, keys: Collection[Key]) -> Scope:
        """Return the scope among all resources, in which the address of one of them means only that resource."""
        return replace(self, targets=exactly(self.targets, keys), excludes=exactly(self.excludes, keys))

    def selects(self, *members: tuple[Key, Source | None]) -> bool:
        """Return whether a unit is selected: a pattern matches one of its `members`, and no exclusion matches any."""
        if not self.selective:
            return True
        if any(fnmatch.fnmatchcase(str(key), glob) for glob in self.excludes for key, _ in members):
            return False
        return any(self._asks_for(key, source) for key, source in members)

    def matching_nothing(self, members: Iterable[tuple[Key, Source | None]]) -> list[str]:
        """Return the paths and globs that match no resource, which is usually a mistake."""
        members = list(members)
        globs = [
            g for g in (*self.targets, *self.excludes) if not any(fnmatch.fnmatchcase(str(k), g) for k, _ in members)
        ]
        files = {source.file for _, source in members if source is not None}
        return [*globs, *(path for path in self.paths if not any(_is_below(file, path) for file in files))]

    def _asks_for(self, key: Key, source: Source | None) -> bool:
        if self.targets and not any(fnmatch.fnmatchcase(str(key), glob) for glob in self.targets):
            return False
        return not self.paths or (source is not None and any(_is_below(source.file, path) for path in self.paths))


def _is_below(file: str, path: str) -> bool:
    return path == "." or PurePosixPath(file).is_relative_to(path)

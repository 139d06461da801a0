"""The groups that names tell of, and the roles in them, as numbers."""

from __future__ import annotations

from collections.abc import Sequence

from adatkg_core.text import NameStructure

HEAD = 0  # role of a name that is the name of a group itself: "Kenya" beside "Citizen (Kenya)"
NONE = -1  # group and role where names tell of none


class Grouping:
    """Group and role numbers of names, in order of arrival: a pure function of the names registered so far in order.

    A name without a group of its own is the head of the group of its name, which others may or may not join later.
    """

    def __init__(self, structure: NameStructure) -> None:
        self.structure = structure
        self._group: dict[str, int] = {}
        self._role: dict[str, int] = {}

    @property
    def groups(self) -> int:
        """How many there are so far, those without a second member included."""
        return len(self._group)

    @property
    def roles(self) -> int:
        """How many there are so far, the head's included."""
        return 0 if self.structure.kind == "none" else len(self._role) + 1

    def add(self, names: Sequence[str]) -> tuple[list[int], list[int]]:
        """Group and role of each name; what is new gets the next number."""
        if self.structure.kind == "none":
            return [NONE] * len(names), [NONE] * len(names)
        groups, roles = [], []
        for name in names:
            role, group = self._parts(name)
            groups.append(self._group.setdefault(group, len(self._group)))
            roles.append(HEAD if role is None else self._role.setdefault(role, len(self._role) + 1))
        return groups, roles

    def look_up(self, names: Sequence[str]) -> tuple[list[int], list[int]]:
        """The numbers that `add` would give, without registering anything."""
        if self.structure.kind == "none":
            return [NONE] * len(names), [NONE] * len(names)
        new_groups: dict[str, int] = {}
        new_roles: dict[str, int] = {}
        found = [self._parts(name) for name in names]
        groups = [_next(group, self._group, new_groups, 0) for _, group in found]
        return groups, [HEAD if role is None else _next(role, self._role, new_roles, 1) for role, _ in found]

    def _parts(self, name: str) -> tuple[str | None, str]:
        return self.structure.parts(name) or (None, self.structure.own_name(name))


def _next(name: str, known: dict[str, int], new: dict[str, int], first: int) -> int:
    """The number of a name, behind all that are known and new where it is neither."""
    return known[name] if name in known else new.setdefault(name, first + len(known) + len(new))

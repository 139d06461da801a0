"""Groups that names tell of: "Citizen (Kenya)" has the role "Citizen" in the group "Kenya".

Which way of writing them a graph has is found once, from many names; a graph without one has the kind "none".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

from adatkg_core.constants import NameKind

Parts = tuple[str, str]  # role, group

FEWEST_NAMES = 20  # that must be written in one way before it is taken for more than chance
SMALLEST_SHARE = 0.1  # of all names that must be written so
FEWEST_GROUPS = 5  # with company: two or three prefixes such as "user:" and "item:" are sorts of things, not groups
LEAST_COMPANY = 0.5  # share of the names written so whose group has another member or its head among the names
LARGEST_GROUP = 0.9  # share of them in one group, above which it tells nothing

_EDGE = " \t\r\n\f\v\u00a0_"  # some files write spaces as underscores
_DIGITS = "0123456789"
_BEFORE_NUMBER = _EDGE + "#-.,:/"
_OPENING = {")": "(", "]": "["}
_TITLES = {
    "ag",
    "co",
    "corp",
    "esq",
    "gmbh",
    "inc",
    "jr",
    "limited",
    "llc",
    "llp",
    "ltd",
    "md",
    "phd",
    "plc",
    "sa",
    "sr",
}
_SECOND_LEVEL = {"ac", "co", "com", "edu", "go", "gov", "ne", "net", "or", "org"}  # below country codes: "co.uk"


@dataclass(frozen=True)
class NameStructure:
    """The way in which the names of a graph tell of groups."""

    kind: NameKind = "none"

    def parts(self, name: str) -> Parts | None:
        """Role and group of a name; None where it has no group of its own."""
        split = _SPLIT.get(self.kind)
        return None if split is None else split(name)

    @staticmethod
    def own_name(name: str) -> str:
        """A name without a group of its own, written as others would name it as their group."""
        return name.strip(_EDGE) or name


@dataclass(frozen=True)
class GroupCount:
    """How much of some names a structure explains."""

    names: int  # that have a group
    groups: int
    heads: int  # names that are the name of a group themselves
    example: str | None  # the shortest name of the largest group


def find_structure(names: Iterable[str]) -> NameStructure:
    """The way of writing groups that explains the most names; "none" unless enough names have it and share groups."""
    known = dict.fromkeys(names)
    tallies: dict[NameKind, Counter[str]] = {kind: Counter() for kind in _SPLIT}
    ways = [(split, tallies[kind]) for kind, split in _SPLIT.items()]
    for name in known:
        for split, tally in ways:
            found = split(name)
            if found is not None:
                tally[found[1]] += 1
    explained = {kind: _explained(tally, known) for kind, tally in tallies.items()}
    best = max(explained, key=lambda kind: explained[kind])  # of equals the first of `NameKind`
    return NameStructure(best if explained[best] else "none")


def choose_structure(setting: str, names: Iterable[str]) -> NameStructure:
    """The structure that a setting asks for; "auto" looks for one in the names."""
    for kind in get_args(NameKind):
        if kind == setting:
            return NameStructure(kind)
    return find_structure(names)


def count_groups(structure: NameStructure, names: Sequence[str]) -> GroupCount:
    """How many of the names have groups by this structure, and an example."""
    known = dict.fromkeys(names)
    found = [(name, parts[1]) for name in known if (parts := structure.parts(name)) is not None]
    tally = Counter(group for _, group in found)
    largest = max(tally, key=lambda group: tally[group], default=None)
    example = min((name for name, group in found if group == largest), key=len, default=None)
    return GroupCount(len(found), len(tally), sum(group in known for group in tally), example)


def _explained(groups: Counter[str], known: dict[str, None]) -> int:
    """How many names a way of writing explains, heads included; 0 where it is too little to be meant."""
    written = groups.total()
    if written < max(FEWEST_NAMES, SMALLEST_SHARE * len(known)) or max(groups.values()) > LARGEST_GROUP * written:
        return 0
    heads = sum(group in known for group in groups)
    in_company = [count for group, count in groups.items() if count > 1 or group in known]
    if len(in_company) < FEWEST_GROUPS or sum(in_company) < LEAST_COMPANY * written:
        return 0
    return sum(in_company) + heads


def _brackets(name: str) -> Parts | None:
    """The last brackets at the end: "Ministry (Foreign Affairs) (Iran)" is of the group "Iran"."""
    name = name.strip(_EDGE)
    opening = _OPENING.get(name[-1:])
    if opening is None:
        return None
    start = _partner(name, opening)
    if start < 1:
        return None
    # GDELT's codes of actors, "EQUIFAX INC (USA@MNC)": the country comes first, and many have none.
    group, at, rest = name[start + 1 : -1].partition("@")
    return None if at and "." in rest else _pair(name[:start], group)


def _partner(name: str, opening: str) -> int:
    """Where the bracket begins that the last character closes; -1 where nowhere."""
    end, depth = len(name) - 1, 1
    while depth:
        start = name.rfind(opening, 0, end)
        if start < 0:
            return -1
        depth += name.count(name[-1], start, end) - 1
        end = start
    return end


def _comma(name: str) -> Parts | None:
    """What follows the last comma, unless it is a title or the form of a company: "Paris, France"."""
    role, comma, group = name.rpartition(",")
    if not comma or group.strip(_EDGE).replace(".", "").casefold() in _TITLES:
        return None
    return _pair(role, group)


def _colon(name: str) -> Parts | None:
    """What stands before the first colon, unless it begins a URL: "sales:ann"."""
    group, colon, role = name.partition(":")
    return _pair(role, group) if colon and not role.startswith("//") else None


def _slash(name: str) -> Parts | None:
    """What stands before the first slash, unless there is a space around it, as in "Officials / Others"."""
    group, slash, role = name.partition("/")
    if not slash or not group or not role or role[0] == "/" or group[-1] in _EDGE or role[0] in _EDGE:
        return None
    return _pair(role, group)


def _address(name: str) -> Parts | None:
    """The domain of a mail address or of a host below it: "ann@company.com", "db1.company.com"."""
    who, at, host = name.strip().rpartition("@")
    if at:
        domain = _domain(host) if "." in host else host if host.replace("-", "").isalnum() else None
        return None if domain is None else _pair(who, domain)
    domain = _domain(host) if host.count(".") > 1 else None
    return None if domain is None else _pair(host[: -len(domain) - 1], domain)


def _domain(host: str) -> str | None:
    """The part of a host's name that one owner has: "company.com", "company.co.uk"; None where it is no such name."""
    labels = host.split(".")
    top = labels[-1]
    if len(top) < 2 or not (top.isalpha() or top.startswith("xn--")):
        return None
    if not all(label.replace("-", "").isalnum() for label in labels):
        return None
    country = len(top) == 2 and len(labels) > 2 and labels[-2] in _SECOND_LEVEL
    return ".".join(labels[-3:] if country else labels[-2:])


def _pair(role: str, group: str) -> Parts | None:
    """Both without spaces around them; a group has a letter, so that years, times and numbers are none.

    A number at the end of a role is left out, because it tells one of many in the same role from the others.
    """
    role, group = role.strip(_EDGE), group.strip(_EDGE)
    if not role or not (group.isalpha() or any(map(str.isalpha, group))):
        return None
    if role[-1] in _DIGITS:
        role = role.rstrip(_DIGITS).rstrip(_BEFORE_NUMBER) or role
    return role, group


_SPLIT: dict[NameKind, Callable[[str], Parts | None]] = {
    "brackets": _brackets,
    "comma": _comma,
    "colon": _colon,
    "slash": _slash,
    "address": _address,
}

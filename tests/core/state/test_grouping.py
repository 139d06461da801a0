from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adatkg_core.constants import NameKind
from adatkg_core.datasets import load_dataset
from adatkg_core.state import HEAD, Catalog, Grouping
from adatkg_core.text import NameStructure

BRACKETS = NameStructure("brackets")
name = st.builds(
    "{}{}".format,
    st.sampled_from(["Citizen", "Police", "Kenya", "Peru", "Holy See (Vatican)", "sales"]),
    st.sampled_from(
        ["", " (Kenya)", " (Peru)", " (Mali)", " (Holy See (Vatican))", ", Kenya", ":ann", "/ann", "@a.org"]
    ),
)
names = st.lists(name, max_size=30)
structure = st.sampled_from([NameStructure(kind) for kind in get_args(NameKind)])


@pytest.mark.parametrize("order", [["Kenya", "Citizen (Kenya)"], ["Citizen (Kenya)", "Kenya"]])
def test_a_head_is_of_its_group_whichever_came_first(order: list[str]) -> None:
    grouping = Grouping(BRACKETS)
    found = {name: grouping.add([name]) for name in order}
    assert found == {"Kenya": ([0], [HEAD]), "Citizen (Kenya)": ([0], [1])}
    assert (grouping.groups, grouping.roles) == (1, 2)


def test_groups_and_roles_are_numbered_as_they_arrive() -> None:
    grouping = Grouping(BRACKETS)
    assert grouping.add(["Citizen (Kenya)", "Ann", "Citizen (Peru)", "Police (Kenya)", "Peru"]) == (
        [0, 1, 2, 0, 2],
        [1, HEAD, 1, 2, HEAD],
    )
    assert (grouping.groups, grouping.roles) == (3, 3)


def test_names_that_only_queries_mention_leave_no_trace() -> None:
    grouping = Grouping(BRACKETS)
    grouping.add(["Citizen (Kenya)"])
    asked = ["Kenya", "Police (Kenya)", "Citizen (Peru)", "Police (Peru)", "Ann", "Citizen (Kenya)"]
    for _ in range(2):
        assert grouping.look_up(asked) == ([0, 0, 1, 1, 2, 0], [HEAD, 2, 1, 2, HEAD, 1])
    assert (grouping.groups, grouping.roles) == (1, 2)


@given(structure, names, names)
def test_what_is_looked_up_are_the_numbers_that_the_names_would_get(
    structure: NameStructure, before: list[str], asked: list[str]
) -> None:
    grouping = Grouping(structure)
    grouping.add(before)
    assert grouping.look_up(asked) == grouping.add(asked)


@given(names)
def test_without_a_structure_nobody_has_a_group(some: list[str]) -> None:
    grouping = Grouping(NameStructure("none"))
    nothing = [-1] * len(some)
    assert grouping.add(some) == grouping.look_up(some) == (nothing, nothing)
    assert grouping.groups == grouping.roles == 0


@given(structure, names, st.data())
def test_a_grouping_built_anew_from_the_catalog_is_the_same(
    structure: NameStructure, some: list[str], data: st.DataObject
) -> None:
    """As after a restore: a snapshot holds the names in order, however they came in and whatever was asked."""
    catalog, live = Catalog(), Grouping(structure)
    groups: list[int] = []
    roles: list[int] = []
    rest = some
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        part, rest = rest[:size], rest[size:]
        live.look_up(data.draw(names))
        found = live.add(catalog.add(part))
        groups += found[0]
        roles += found[1]
    again = Grouping(structure)
    assert again.add(catalog.names) == (groups, roles)
    assert live.look_up(catalog.names) == again.look_up(catalog.names) == (groups, roles)
    assert (live.groups, live.roles) == (again.groups, again.roles)


@given(structure, names, names)
def test_what_comes_later_never_changes_a_number(structure: NameStructure, before: list[str], after: list[str]) -> None:
    grouping = Grouping(structure)
    found = grouping.add(before)
    grouping.add(after)
    assert grouping.add(before) == grouping.look_up(before) == found


@given(structure, names)
def test_two_names_share_a_number_exactly_when_they_share_what_it_numbers(
    structure: NameStructure, some: list[str]
) -> None:
    """Against the definition: the group is the part or the name itself, the head has no role of its own."""
    parts = [structure.parts(name) or (None, name) for name in some]
    groups, roles = Grouping(structure).add(some)
    if structure.kind == "none":
        return
    for i, (role, group) in enumerate(parts):
        assert [groups[i] == number for number in groups] == [group == other for _, other in parts]
        assert [roles[i] == number for number in roles] == [role == other for other, _ in parts]
        assert (roles[i] == HEAD) == (role is None)


def test_most_names_of_the_shipped_graph_have_company() -> None:
    entities = load_dataset("icews14").entities
    groups, roles = Grouping(BRACKETS).add(entities)
    place = {name: row for row, name in enumerate(entities)}
    thailand = groups[place["Thailand"]]
    assert groups[place["Citizen (Thailand)"]] == groups[place["Protester (Thailand)"]] == thailand
    assert roles[place["Thailand"]] == HEAD
    assert roles[place["Citizen (Thailand)"]] == roles[place["Citizen (Kenya)"]] != roles[place["Protester (Thailand)"]]
    assert groups.count(thailand) == 66

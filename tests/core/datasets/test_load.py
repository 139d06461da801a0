from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from adatkg_core.datasets import Dataset, load_dataset, up_to
from adatkg_core.datasets.dataset import make_dataset
from adatkg_core.datasets.packed import pack, unpack
from adatkg_core.errors import InputError
from adatkg_core.text import text_of

Layout = Callable[..., Path]


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Writes a small folder in the usual layout; a file given as None is left out."""

    def write(**files: str | bytes | None) -> Path:
        content: dict[str, str | bytes | None] = {
            "entity2id": "Ann\t0\nBob\t1\nCarl_the_Great\t2\n",
            "relation2id": "Make_statement\t0\nConsult\t1\n",
            "train": "0\t0\t1\t0\n1\t1\t2\t1\n",
            "valid": "2\t0\t0\t2\n",
            "test": "0\t1\t2\t3\n",
            **files,
        }
        for name, text in content.items():
            if text is not None:
                (tmp_path / f"{name}.txt").write_bytes(text.encode() if isinstance(text, str) else text)
        return tmp_path

    return write


@pytest.fixture(scope="module")
def icews14() -> Dataset:
    return load_dataset("icews14")


def test_shipped_icews14_has_the_published_counts(icews14: Dataset) -> None:
    assert (icews14.n_entities, icews14.n_relations, icews14.facts.shape) == (7128, 230, (90730, 4))
    assert len(set(icews14.entities)) == 7128
    assert icews14.times.tolist() == list(range(1, 366))
    assert (icews14.step, icews14.granularity) == (1, "day")


def test_shipped_icews14_splits_as_in_the_papers(icews14: Dataset) -> None:
    parts = [icews14.split("train"), icews14.split("valid"), icews14.split("test")]
    assert [len(part) for part in parts] == [44343, 17417, 28970]
    assert [len(np.unique(part[:, 3])) for part in parts] == [182, 73, 110]
    assert icews14.split_bounds == (183, 256)
    known = np.unique(parts[0][:, [0, 2]])
    assert len(np.unique(icews14.facts[:, [0, 2]])) - len(known) == 1854


def test_what_was_known_at_a_time_names_no_entity_that_came_later(icews14: Dataset) -> None:
    early = up_to(icews14, 40, 0.1)
    rows = icews14.facts[icews14.facts[:, 3] <= 40]
    told = [(icews14.entities[s], r, icews14.entities[o], t) for s, r, o, t in rows.tolist()]
    assert [(early.entities[s], r, early.entities[o], t) for s, r, o, t in early.facts.tolist()] == told
    assert set(early.entities) == {name for s, _, o, _ in told for name in (s, o)}
    assert early.relations == icews14.relations and early.clock == icews14.clock


def test_what_was_known_at_a_time_has_its_newest_times_as_valid_and_no_test(icews14: Dataset) -> None:
    early = up_to(icews14, 40, 0.1)
    assert [np.unique(early.split(part)[:, 3]).tolist() for part in ("train", "valid", "test")] == [
        list(range(1, 37)),
        [37, 38, 39, 40],
        [],
    ]
    with pytest.raises(InputError, match="nothing happened up to time 2013-12-31; it goes from 2014-01-01 to"):
        up_to(icews14, 0, 0.1)
    with pytest.raises(InputError, match="window is 1"):
        up_to(icews14, 40, 1)


def test_shipped_icews14_is_small_and_loads_at_once() -> None:
    files = (Path(__file__).parents[3] / "adatkg_core" / "datasets" / "shipped" / "icews14").iterdir()
    assert sum(file.stat().st_size for file in files) < 400_000
    started = time.perf_counter()
    load_dataset("ICEWS14")
    assert time.perf_counter() - started < 2.0  # 0.05 s on an idle machine


def test_shipped_icews14_equals_the_published_files(icews14: Dataset, benchmark_data: Path) -> None:
    published = load_dataset(str(benchmark_data / "ICEWS14"))
    assert published.entities == icews14.entities
    assert published.relations == icews14.relations
    assert np.array_equal(published.facts, icews14.facts)


@pytest.mark.parametrize(
    ("name", "facts", "times", "step", "granularity"),
    [
        ("ICEWS18", 468_558, 304, 24, "day"),
        ("ICEWS05-15", 461_329, 4017, 1, "day"),
        ("GDELT", 2_217_218, 2751, 15, "15 minutes"),
    ],
)
def test_published_benchmarks_load_with_their_quirks(
    benchmark_data: Path, name: str, facts: int, times: int, step: int, granularity: str
) -> None:
    data = load_dataset(str(benchmark_data / name))
    assert (len(data.facts), len(data.times), data.step, data.granularity) == (
        facts,
        times,
        step,
        granularity,
    )
    assert not any(relation.isdigit() for relation in data.relations)


def test_packing_and_unpacking_changes_nothing(tmp_path: Path, icews14: Dataset) -> None:
    few = make_dataset("few", icews14.entities, icews14.relations, icews14.facts[:500], "day")
    pack(few, tmp_path)
    back = unpack(tmp_path)
    assert (back.name, back.entities, back.relations) == (few.name, few.entities, few.relations)
    assert np.array_equal(back.facts, few.facts)


def test_a_damaged_packed_data_set_is_refused(tmp_path: Path, icews14: Dataset) -> None:
    pack(make_dataset("few", icews14.entities, icews14.relations, icews14.facts[:500]), tmp_path)
    packed = tmp_path / "facts.xz"
    packed.write_bytes(packed.read_bytes()[:-40])
    with pytest.raises(InputError, match="damaged"):
        unpack(tmp_path)


def test_underscores_in_place_of_spaces_become_spaces(layout: Layout) -> None:
    data = load_dataset(str(layout()))
    assert data.entities == ("Ann", "Bob", "Carl the Great")
    assert data.relations == ("Make statement", "Consult")


def test_underscores_in_a_file_with_spaces_are_kept(layout: Layout) -> None:
    data = load_dataset(str(layout(entity2id="Carl the Great\t0\nuser_7\t1\nÖzil\t2\n")))
    assert data.entities == ("Carl the Great", "user_7", "Özil")


@pytest.mark.parametrize(
    "train",
    [
        "0    \t0    \t1  \t0  \t0\n1    \t1 \t2\t1\t0\n",
        "0\t0\t1\t0\r\n1\t1\t2\t1\r\n",
        "\ufeff0\t0\t1\t0\n1\t1\t2\t1\n",
        "\n0\t0\t1\t0\n\n\n1\t1\t2\t1\n\n",
        "0\t0\t1\t0\t0\n1\t1\t2\t1",
        "0 0 1 0\n1 1 2 1\n",
        "0\t0\t1\t0\t0\n1\t1\t2\t1\n",
        "0\t0\t1\t0\t-1\n1\t1\t2\t1\tx\n",
    ],
    ids=[
        "padded",
        "crlf",
        "bom",
        "blank lines",
        "no last newline",
        "spaces",
        "mixed columns",
        "fifth column",
    ],
)
def test_quirks_of_layout_do_not_change_the_facts(layout: Layout, train: str) -> None:
    data = load_dataset(str(layout(train=train)))
    assert data.facts.tolist() == [[0, 0, 1, 0], [1, 1, 2, 1], [2, 0, 0, 2], [0, 1, 2, 3]]


def test_facts_come_in_order_of_time_and_else_as_written(layout: Layout) -> None:
    data = load_dataset(str(layout(train="1\t1\t2\t5\n0\t0\t1\t0\n0\t0\t0\t5\n")))
    assert data.facts[:, 3].tolist() == [0, 2, 3, 5, 5]
    assert data.facts[-2:, 0].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("raw", "ticks", "step"),
    [([0, 24, 72], [0, 1, 3], 24), ([5, 20, 35], [0, 1, 2], 15), ([1, 2, 9], [1, 2, 9], 1), ([7], [7], 1)],
)
def test_ticks_are_the_raw_times_floored_to_their_common_step(raw: list[int], ticks: list[int], step: int) -> None:
    data = make_dataset("any", ["a"], ["r"], np.array([[0, 0, 0, t] for t in raw]))
    assert data.facts[:, 3].tolist() == ticks
    assert data.step == step


@pytest.mark.parametrize("n", [1, 2, 3, 10, 17])
def test_splits_are_disjoint_and_complete_for_any_number_of_times(n: int) -> None:
    data = make_dataset("any", ["a"], ["r"], np.array([[0, 0, 0, t] for t in range(n)]))
    parts = [data.split("train"), data.split("valid"), data.split("test")]
    assert [len(part) for part in parts] == [int(n * 0.5), int(n * 0.7) - int(n * 0.5), n - int(n * 0.7)]
    assert np.array_equal(np.concatenate(parts), data.facts)


def test_words_for_cameo_codes_are_preferred(layout: Layout) -> None:
    folder = layout(relation2id="020\t0\n030\t1\n", relation2id_cameo_names="Appeal to\t0\nIntend to\t1\n")
    assert load_dataset(str(folder)).relations == ("Appeal to", "Intend to")


def test_a_folder_with_only_train_is_a_data_set(layout: Layout) -> None:
    assert len(load_dataset(str(layout(valid=None, test=None))).facts) == 2


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"train": "0\t0\t1\t0\n0\t0\t1\n"}, r"train.txt, line 2: 3 columns, expected 4 or 5; write"),
        ({"train": "0\t0\t1\t0\t0\t0\n"}, r"train.txt, line 1: 6 columns"),
        ({"valid": "0\t0\t1\t0\n\n0\tx\t1\t1\n"}, r"valid.txt, line 3: relation 'x' is not a whole number"),
        ({"test": "0\t0\t1\t1.5\n"}, r"test.txt, line 1: time '1.5' is not a whole number"),
        ({"train": "0\t0\t3\t0\n"}, r"train.txt, line 1: object 3 is out of range; ids go from 0 to 2"),
        ({"train": "0\t0\t0\t0\n0\t2\t0\t0\n"}, r"train.txt, line 2: relation 2 is out of range"),
        ({"train": "0\t0\t1\t-3\n"}, r"train.txt, line 1: time -3 is negative"),
        ({"train": f"0\t0\t1\t{10**30}\n"}, r"train.txt, line 1: time 10+ is out of range"),
        ({"train": b"0\t0\t1\t0\n\xff\t0\t1\t0\n"}, r"train.txt, line 2: not UTF-8"),
        ({"train": "", "valid": "", "test": "\n"}, r"has no facts"),
        ({"test": None}, r"lacks test.txt: a data set folder holds train.txt"),
        ({"train": None, "entity2id": None}, r"lacks train.txt, entity2id.txt"),
        ({"entity2id": "Ann\t0\nBob\t0\nCarl\t2\n"}, r"entity2id.txt, line 2: id 0 is already 'Ann'"),
        ({"entity2id": "Ann\t0\nAnn\t1\nCarl\t2\n"}, r"entity2id.txt, line 2: 'Ann' is already on line 1"),
        ({"entity2id": "Ann\t0\nBob\t5\nCarl\t2\n"}, r"entity2id.txt, line 2: id 5 is out of range"),
        ({"entity2id": "Ann\t0\nBob\n"}, r"entity2id.txt, line 2: expected name<TAB>id"),
        ({"entity2id": "Ann\t-1\n"}, r"entity2id.txt, line 1: id -1 is negative"),
        ({"relation2id": "\n"}, r"relation2id.txt is empty"),
        ({"relation2id_cameo_names": "Appeal to\t0\n"}, r"names 1 relations but relation2id.txt has 2"),
    ],
)
def test_bad_input_names_the_file_the_line_and_the_remedy(
    layout: Layout, files: dict[str, str | bytes | None], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        load_dataset(str(layout(**files)))


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match="shipped names are icews14"):
        load_dataset("icews15")


def test_a_file_in_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.txt").touch()
    with pytest.raises(InputError, match="is a file: give the folder"):
        load_dataset(str(tmp_path / "train.txt"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Citizen_(Nigeria)", "Citizen (Nigeria)"),
        ("Shaikh_Ibrahim__Al_Khalifa", "Shaikh Ibrahim Al Khalifa"),
        ("EGYPT (EGY@ OPP REF)", "EGYPT"),
        ("PRESIDENT (@GOV)", "PRESIDENT"),
        ("CATHOLIC ( MAR@ OPP)", "CATHOLIC"),
        ("Oluṣẹgun Ọbasanjọ", "Oluṣẹgun Ọbasanjọ"),
        ("(@GOV)", "(@GOV)"),
    ],
)
def test_text_of_a_name_is_what_a_reader_would_say(name: str, text: str) -> None:
    assert text_of(name) == text


def test_the_calendar_of_icews14_begins_with_its_first_day() -> None:
    clock = load_dataset("icews14").clock
    assert clock is not None
    assert (clock.iso(1), clock.iso(365)) == ("2014-01-01", "2014-12-31")
    assert clock.tick("2014-03-02T23:59:59Z") == clock.tick("2014-03-02") == 61

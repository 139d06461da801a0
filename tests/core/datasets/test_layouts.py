"""Folders as the field publishes them, by small files that look like the real ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from adatkg_core.clock import Clock
from adatkg_core.datasets import Dataset, load_dataset
from adatkg_core.errors import InputError

Write = Callable[..., Path]
IDS, TLOGIC, NAMES, EDGES = "RE-GCN", "TLogic", "TNTComplEx", "TGB 2.0"

YAGO_ENTITIES = (
    "<Getafe_CF>\t1\t1983-07-08\t####-##-##\n<Jane_Bryan>\t0\t1918-06-11\t2009-04-08\n<Janet_Jagan>\t2\t1\t2009-03-28\n"
)
YAGO = {
    "entity2id.txt": YAGO_ENTITIES,
    "relation2id.txt": "<wasBornIn>\t0\n<playsFor>\t1\n",
    "stat.txt": "3\t2\t189\n",
    "train.txt": "0\t1\t1\t0\t0\n2\t1\t1\t0\t0\n",
    "valid.txt": "0\t1\t1\t1\t0\n",
    "test.txt": "2\t0\t1\t2\t0\n",
}
TLOGIC_FILES = {
    "entity2id.json": json.dumps({"China": 2, "Citizen_(India)": 0, "Børge_Brende": 1}),
    "relation2id.json": json.dumps({"Consult": 0, "Make_statement": 1}),
    "ts2id.json": json.dumps({"2014-01-01": 0, "2014-01-02": 1}),
    "train.txt": "China\tConsult\tCitizen_(India)\t2014-01-01\nBørge_Brende\tMake_statement\tChina\t2014-01-03\n",
    "valid.txt": "China\tMake_statement\tBørge_Brende\t2014-01-04\n",
    "test.txt": "China\tConsult\tBørge_Brende\t2014-01-06\n",
}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a folder of this name with these files; a file given as None is left out."""

    def made(name: str, files: dict[str, str | None], **changed: str | None) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        for file, text in (files | {key.replace("__", "."): value for key, value in changed.items()}).items():
            if text is not None:
                (folder / file).write_text(text, "utf-8")
        return folder

    return made


def told(data: Dataset) -> list[tuple[str, str, str, str | int]]:
    """The facts in words."""
    clock = data.clock
    return [
        (data.entities[s], data.relations[r], data.entities[o], clock.iso(t) if clock else t)
        for s, r, o, t in data.facts.tolist()
    ]


def test_yagos_names_come_without_brackets_and_the_dates_behind_their_ids(write: Write) -> None:
    data = load_dataset(str(write("YAGO", YAGO)))
    assert IDS in data.layout and data.notes == ()
    assert data.entities == ("Jane Bryan", "Getafe CF", "Janet Jagan")
    assert data.granularity == "year" and data.clock is None
    assert told(data)[-1] == ("Janet Jagan", "wasBornIn", "Getafe CF", 2)


def test_names_that_are_wikidatas_codes_are_noted(write: Write) -> None:
    folder = write("WIKI", YAGO, entity2id__txt="Q1\t0\nQ30\t1\nQ2\t2\n", relation2id__txt="P39\t1\nP54\t0\n")
    data = load_dataset(str(folder))
    assert data.notes == ("entities have codes such as Q1 for names: nothing can be learned from them",)


@pytest.mark.parametrize(
    "entities",
    [
        "China 0\nSouth Korea 1\nIran 2\n",
        "0\tChina\n1\tSouth Korea\n2\tIran\n",
        "3\nChina\t0\nSouth Korea\t1\nIran\t2\n",
    ],
    ids=["a space before the id", "the id first", "their number in the first line"],
)
def test_files_of_names_may_be_written_otherwise(write: Write, entities: str) -> None:
    assert load_dataset(str(write("g", YAGO, entity2id__txt=entities))).entities == ("China", "South Korea", "Iran")


def test_ids_in_json_go_with_quadruples_of_ids(write: Write) -> None:
    files = YAGO | {"entity2id.txt": None, "entity2id.json": '{"China": 0, "Iran": 2, "South Korea": 1}'}
    data = load_dataset(str(write("g", files)))
    assert IDS in data.layout and data.entities == ("China", "South Korea", "Iran")


@pytest.mark.parametrize(
    ("times", "clock", "granularity"),
    [
        (("24", "48", "96"), Clock("2014-01-01"), "day"),
        (("1.0", "2.0", "4.00"), Clock("2013-12-31"), "day"),
        (("2014-01-01", "2014-01-02", "2014-01-04"), Clock("2014-01-01"), "day"),
        (
            ("2014-01-01 06:00", "2014-01-01 07:00", "2014-01-01 09:00"),
            Clock("2014-01-01T06:00:00+00:00", 3600),
            "hour",
        ),
        (("20140131", "20140201", "20140203"), Clock("2014-01-31"), "day"),
        (("1388534400", "1388620800", "1388793600"), Clock("2014-01-01"), "day"),
        (("1950-##-##", "1951-05-17", "1953-##-##"), None, "year"),
    ],
    ids=["hours", "floats", "dates", "times", "YYYYMMDD", "Unix seconds", "years"],
)
def test_times_are_read_as_they_are_written(
    write: Write, times: tuple[str, str, str], clock: Clock | None, granularity: str
) -> None:
    parts = ("train.txt", "valid.txt", "test.txt")
    files = YAGO | {part: f"0\t1\t1\t{time}\n" for part, time in zip(parts, times, strict=True)}
    data = load_dataset(str(write("icews14" if granularity == "day" else "other", files)))
    ticks = data.facts[:, 3] - data.facts[0, 3]
    assert ticks.tolist() == [0, 1, 3] and data.granularity == granularity
    if clock is not None and times[0] not in ("24",):
        assert data.clock == clock


@pytest.mark.parametrize(
    ("fifth", "note"),
    [
        (("0", "0"), None),
        (("-1", "-1"), None),
        (("1953", "1950"), "the fifth column is taken for the end of an interval: each fact counts at its beginning"),
        (("0", "1"), "the fifth column is ignored"),
        (("x", "y"), "the fifth column is ignored"),
    ],
)
def test_a_fifth_column_is_never_used_and_told_of_where_it_says_something(
    write: Write, fifth: tuple[str, str], note: str | None
) -> None:
    rows = "".join(f"0\t1\t1\t{1949 + n}\t{value}\n" for n, value in enumerate(fifth))
    data = load_dataset(str(write("g", YAGO, train__txt=rows, valid__txt=None, test__txt=None)))
    assert data.facts.tolist() == [[0, 1, 1, 1949], [0, 1, 1, 1950]]
    assert data.notes == ((note,) if note else ())


def test_intervals_of_dates_count_at_their_beginning_and_unknown_ones_are_left_out(write: Write) -> None:
    rows = "0\t1\t1\t1950-##-##\t1953-##-##\n2\t1\t1\t####-##-##\t1960-##-##\n2\t0\t1\t1951-02-03\t####-##-##\n"
    data = load_dataset(str(write("YAGO11k", YAGO, train__txt=rows, valid__txt=None, test__txt=None)))
    assert data.facts.tolist() == [[0, 1, 1, 1950], [2, 0, 1, 1951]]
    assert data.notes == (
        "dates are taken as years",
        "1 facts whose year is not known, or before our era, are left out",
        "the fifth column is taken for the end of an interval: each fact counts at its beginning",
    )


def test_tlogics_names_keep_the_ids_of_its_json(write: Write) -> None:
    data = load_dataset(str(write("icews14", TLOGIC_FILES)))
    assert TLOGIC in data.layout
    assert data.entities == ("Citizen (India)", "Børge Brende", "China")
    assert data.clock == Clock("2014-01-01") and data.granularity == "day"
    assert told(data) == [
        ("China", "Consult", "Citizen (India)", "2014-01-01"),
        ("Børge Brende", "Make statement", "China", "2014-01-03"),
        ("China", "Make statement", "Børge Brende", "2014-01-04"),
        ("China", "Consult", "Børge Brende", "2014-01-06"),
    ]


def test_names_and_dates_without_ids_and_without_endings_are_numbered_as_they_come(write: Write) -> None:
    files = {stem: TLOGIC_FILES[f"{stem}.txt"] for stem in ("train", "valid", "test")}
    data = load_dataset(str(write("ICEWS14", files)))
    assert NAMES in data.layout
    assert data.entities == ("China", "Citizen (India)", "Børge Brende")
    assert told(data)[-1] == ("China", "Consult", "Børge Brende", "2014-01-06")


def test_an_edge_list_of_ids_takes_its_names_from_the_files_beside_it(write: Write) -> None:
    # Midnights in Montreal, where these files were made, before and after the change to summer time.
    edges = "timestamp,head,tail,relation_type\n1520398800,0,1,0\n1520744400,1,2,1\n1520827200,2,0,0\n"
    mapping = "edge_id,type,name\n010,0,Make statement\n040,\x1c1,Consult\n"  # a space that int does not know
    files: dict[str, str | None] = {
        "tkgl-icews_edgelist.csv": edges,
        "tkgl-icews_nodemapping.csv": 'name,id\nChina,0\n"Police, Kenya",1\nIran,2\n',
        "tkgl-icews_edgemapping.csv": mapping,
        "tkgl-icews_val_ns.pkl": "not read",
    }
    data = load_dataset(str(write("tkgl_icews", files)))
    assert EDGES in data.layout and data.notes == ()
    assert told(data) == [
        ("China", "Make statement", "Police, Kenya", "2018-03-07"),
        ("Police, Kenya", "Consult", "Iran", "2018-03-11"),
        ("Iran", "Make statement", "China", "2018-03-12"),
    ]


def test_an_edge_list_without_names_is_known_by_its_ids_and_says_so(write: Write) -> None:
    edges = "date,head,tail,relation_type\n0,17,4,9\n1,4,17,9\n"
    mapping = "node_type_name,id\nuser,0\n"
    data = load_dataset(str(write("t", {"thgl-x_edgelist.csv": edges, "thgl-x_nodemapping.csv": mapping})))
    assert told(data) == [("17", "9", "4", 0), ("4", "9", "17", 1)]
    assert data.notes[:2] == (
        "thgl-x_nodemapping.csv does not name all ids, so ids stand for names",
        "there is no thgl-x_edgemapping.csv: ids stand for names",
    )


def test_an_edge_list_of_wikidatas_codes_has_years_and_leaves_static_edges_out(write: Write) -> None:
    files: dict[str, str | None] = {
        "tkgl-smallpedia_edgelist.csv": "ts,head,tail,relation_type\n1999,Q1,Q2,P39\n2001,Q2,Q1,P54\n2002,Q1,Q2,P54\n",
        "tkgl-smallpedia_static_edgelist.csv": "head,tail,relation_type\nQ1,Q9,P31\n",
    }
    data = load_dataset(str(write("tkgl_smallpedia", files)))
    assert told(data) == [("Q1", "P39", "Q2", 1999), ("Q2", "P54", "Q1", 2001), ("Q1", "P54", "Q2", 2002)]
    assert data.granularity == "year"
    assert data.notes[0] == "tkgl-smallpedia_static_edgelist.csv is left out: its edges have no time"


@pytest.mark.parametrize(
    ("files", "says"),
    [
        (
            {"a.csv": "x"},
            r"lacks train.txt, entity2id.txt, relation2id.txt: .* found a.csv. For a CSV .* adatkg import",
        ),
        (
            {"train.txt": "0\t0\t1\t0\n"},
            r"lacks entity2id.txt, relation2id.txt: train.txt holds ids, .* add both files",
        ),
        ({"train.txt": "A\tr\tB\t2014-01-01\n", "test.txt": ""}, r"lacks valid.txt: "),
        (
            {"train.txt": "A\tr\tB\t2014-01-01\nA\tr\tB\tsoon\n"},
            r"train.txt, line 2: time 'soon' .* the others are ISO dates; write all times alike",
        ),
        ({"train.txt": "A\tr\tB\t2014-01-01\n\nA\tr\tB\t7\n"}, r"train.txt, line 3: time '7' .* ISO dates"),
        ({"train.txt": "A\tr\tB\t1\nA\tr\t2\n"}, r"train.txt, line 2: 3 columns, expected 4 or 5; write subject"),
        ({"train.txt": "A\tr\tB\t1\nA\tr\tB\t-2\n"}, r"train.txt, line 2: time -2 is negative; times start at 0"),
        ({"train.txt": "A\tr\tB\t1\n\tr\tB\t2\n"}, r"train.txt, line 2: a name is empty"),
        (
            {"train.txt": '<A>\t<r>\t<B>\t<occursSince>\t"1553-##-##"\n'},
            r"train.txt, line 1: time '<occursSince>' is not a whole number, nor a date",
        ),
        (
            TLOGIC_FILES | {"train.txt": "China\tConsult\tMars\t2014-01-01\n"},
            r"train.txt, line 1: 'Mars' is not in entity2id.json; add it there",
        ),
        (TLOGIC_FILES | {"entity2id.json": "[1]"}, r"entity2id.json: expected one object of names with ids"),
        (TLOGIC_FILES | {"entity2id.json": '{"China": 0, "Iran": 2}'}, r"ids of its 2 names have gaps"),
        (
            {"tgbl-wiki_edgelist.csv": "u,i,ts\n0,1,2\n"},
            r"line 1: the header is u, i, ts, expected timestamp, head, tail",
        ),
        (
            {"tkgl-x_edgelist.csv": "ts,head,tail,relation_type\n0,Q1,Q2,P3\n1,Q1,,P3\n"},
            r"tkgl-x_edgelist.csv, line 3: .* an empty one",
        ),
        ({"tkgl-x_edgelist.csv": "ts,head,tail,relation_type\n"}, r"has no edges after its header"),
        (
            {"tkgl-a_edgelist.csv": "", "tkgl-b_edgelist.csv": ""},
            r"several edge lists \(tkgl-a_edgelist.csv, tkgl-b_edgelist.csv\): give each a folder",
        ),
        (
            YAGO | {"clock.json": '{"origin": "2014-01-01", "seconds": 86400}', "test.txt": "0\t1\t1\t2014-01-01\n"},
            r"test.txt, line 1: time '2014-01-01' is no tick of clock.json; write whole ticks, or remove",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_place_and_the_remedy(
    write: Write, files: dict[str, str | None], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        load_dataset(str(write("g", files)))


def test_the_folder_above_a_data_set_names_the_one_to_give(write: Write) -> None:
    inner = write("icews14", TLOGIC_FILES)
    with pytest.raises(InputError, match=f"holds no data set, but icews14 in it does: give {inner}"):
        load_dataset(str(inner.parent))

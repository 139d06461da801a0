from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adatkg_core.clock import Clock
from adatkg_core.datasets import Dataset, load_dataset
from adatkg_core.datasets.csv_import import import_csv
from adatkg_core.datasets.csv_import.importer import Imported
from adatkg_core.datasets.time_columns import Form, read_time
from adatkg_core.errors import AdatkgError, InputError

Named = tuple[str, str, str, str | int]
Import = Callable[..., tuple[Imported, Dataset]]

HEADER = "subject,relation,object,time\n"


@pytest.fixture
def make(tmp_path: Path) -> Import:
    """Imports a text and loads the folder that came of it."""

    def run(text: str | bytes, name: str = "events.csv", **options: object) -> tuple[Imported, Dataset]:
        file = tmp_path / name
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        imported = import_csv(file, tmp_path / "graph", **options)  # type: ignore[arg-type]
        return imported, load_dataset(str(tmp_path / "graph"))

    return run


def named(data: Dataset) -> list[Named]:
    clock = data.clock
    return [
        (data.entities[s], data.relations[r], data.entities[o], clock.iso(t) if clock else t)
        for s, r, o, t in data.facts.tolist()
    ]


def odd(imported: Imported) -> dict[str, tuple[bool, int, list[tuple[int, str]]]]:
    return {one.kind: (one.skipped, one.count, one.examples) for one in imported.odd}


def test_an_import_loads_with_the_same_names_and_dates(make: Import, tmp_path: Path) -> None:
    imported, data = make(
        HEADER + "Ann,met,Bob,2014-03-02\nBob,likes_much,Carl_X,2014-03-09\nAnn,met,Carl_X,2014-03-04\n"
    )
    assert named(data) == [
        ("Ann", "met", "Bob", "2014-03-02"),
        ("Ann", "met", "Carl_X", "2014-03-04"),
        ("Bob", "likes_much", "Carl_X", "2014-03-09"),
    ]
    assert data.entities == ("Ann", "Bob", "Carl_X")
    assert (data.name, data.granularity, data.clock) == ("graph", "day", Clock("2014-03-02", 86_400))
    assert json.loads((tmp_path / "graph" / "clock.json").read_text()) == {"origin": "2014-03-02", "seconds": 86_400}
    assert imported.odd == []
    assert imported.as_dict("x") == {
        "folder": "x",
        "facts": 3,
        "entities": 3,
        "relations": 2,
        "times": 3,
        "first": "2014-03-02",
        "last": "2014-03-09",
        "time_format": "ISO dates",
        "granularity": "day",
        "zone": "UTC",
        "zone_from": "no offset in the times",
        "skipped": 0,
        "odd": [],
    }


def test_the_files_hold_the_split(make: Import, tmp_path: Path) -> None:
    _, data = make(HEADER + "".join(f"a,r,b,2014-01-{day:02}\n" for day in range(1, 11)))
    lengths = [
        len((tmp_path / "graph" / f"{part}.txt").read_text().splitlines()) for part in ("train", "valid", "test")
    ]
    assert lengths == [5, 2, 3] == [len(data.split(part)) for part in ("train", "valid", "test")]


text = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufeff"), min_size=1, max_size=8)
names = st.one_of(text, st.sampled_from(["a,b", 'say "hi"', "🦊", "a\nb", "a_b", " x ", "ß"])).filter(str.strip)
dates = st.dates(date(1800, 1, 1), date(2200, 1, 1))
zones = st.integers(-12, 14).map(lambda hours: timezone(timedelta(hours=hours)))
moments = st.datetimes(datetime(1800, 1, 1), datetime(2200, 1, 1), timezones=zones).map(
    lambda m: m.replace(microsecond=0)
)


def cleaned(name: str) -> str:
    return name.strip().replace("\n", " ")


def written(rows: Sequence[tuple[str, ...]], delimiter: str) -> bytes:
    target = io.StringIO()
    writer = csv.writer(target, delimiter=delimiter)
    writer.writerow(["subject", "relation", "object", "time"])
    writer.writerows(rows)
    return target.getvalue().encode()


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(names, names, names, dates), min_size=1, max_size=12), delimiter=st.sampled_from(",;\t|")
)
def test_names_and_dates_survive(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str, date]], delimiter: str
) -> None:
    folder = tmp_path_factory.mktemp("imported") / "graph"
    import_csv(io.BytesIO(written([(s, r, o, day.isoformat()) for s, r, o, day in rows], delimiter)), folder)
    expected = [(cleaned(s), cleaned(r), cleaned(o), day.isoformat()) for s, r, o, day in rows]
    assert named(load_dataset(str(folder))) == sorted(expected, key=lambda row: row[3])


@settings(max_examples=60, deadline=None)
@given(
    times=st.lists(moments, min_size=1, max_size=12), seconds=st.sampled_from(["1", "60", "3600", "7", "day", "week"])
)
def test_a_time_lies_in_its_tick_and_the_first_tick_is_0(
    tmp_path_factory: pytest.TempPathFactory, times: list[datetime], seconds: str
) -> None:
    folder = tmp_path_factory.mktemp("imported") / "graph"
    rows = [(f"s{i}", "r", "o", time.isoformat()) for i, time in enumerate(times)]
    import_csv(io.BytesIO(written(rows, ",")), folder, granularity=seconds)
    data = load_dataset(str(folder))
    assert data.clock is not None
    found = {data.entities[s]: t for s, _, _, t in data.facts.tolist()}
    assert [found[f"s{i}"] for i in range(len(times))] == [data.clock.tick(time.isoformat()) for time in times]
    assert min(found.values()) == 0


@settings(max_examples=60, deadline=None)
@given(
    start=moments, gaps=st.lists(st.integers(1, 50), min_size=1, max_size=6), unit=st.sampled_from([1, 60, 900, 3600])
)
def test_auto_granularity_keeps_distinct_times_apart(
    tmp_path_factory: pytest.TempPathFactory, start: datetime, gaps: list[int], unit: int
) -> None:
    folder = tmp_path_factory.mktemp("imported") / "graph"
    times = [start + timedelta(seconds=unit * sum(gaps[:i])) for i in range(len(gaps) + 1)]
    import_csv(io.BytesIO(written([("s", "r", "o", time.isoformat()) for time in times], ",")), folder)
    data = load_dataset(str(folder))
    assert data.clock is not None and data.clock.seconds >= unit
    assert len(data.times) == len(times)


@pytest.mark.parametrize(
    ("times", "form", "found"),
    [
        (["2014-01-01", "2014-01-03"], "ISO dates", ["2014-01-01", "2014-01-03"]),
        (["2014/1/1", "2014/01/03"], "dates YYYY/MM/DD", ["2014-01-01", "2014-01-03"]),
        (["20140101", "20140103"], "dates YYYYMMDD", ["2014-01-01", "2014-01-03"]),
        (
            ["2014-01-01T01:00Z", "2014-01-01T05:00+02:00"],
            "ISO times",
            ["2014-01-01T01:00:00+00:00", "2014-01-01T03:00:00+00:00"],
        ),
        (
            ["2014-01-01 01:00:00", "2014-01-01 01:15:00"],
            "ISO times",
            ["2014-01-01T01:00:00+00:00", "2014-01-01T01:15:00+00:00"],
        ),
        (
            ["2014/01/01 01:00", "2014/01/01 01:01"],
            "times YYYY/MM/DD hh:mm",
            ["2014-01-01T01:00:00+00:00", "2014-01-01T01:01:00+00:00"],
        ),
        (["1388534400", "1388534407.5"], "Unix seconds", ["2014-01-01T00:00:00+00:00", "2014-01-01T00:00:07+00:00"]),
        (["1388534400000", "1388620800000"], "Unix milliseconds", ["2014-01-01", "2014-01-02"]),
        (["0", "24"], "whole ticks", [0, 24]),
        (["3.0", "5.0"], "whole ticks", [3, 5]),
        (["2014", "2020"], "whole ticks", [2014, 2020]),
        (
            ["19991231", "20000101", "20000132", "20000133", "5"],
            "whole ticks",
            [5, 19991231, 20000101, 20000132, 20000133],
        ),
    ],
)
def test_each_form_of_time_is_found_out(make: Import, times: list[str], form: str, found: list[str | int]) -> None:
    imported, data = make(HEADER + "".join(f"a,r,b,{time}\n" for time in times))
    assert imported.time_format == form
    assert [row[3] for row in named(data)] == found


@pytest.mark.parametrize(
    "bad",
    ["", "soon", "01/02/2014", "2014-13-01", "2014/13/01", "2014-01", "-5", "1e9", "3.5", "9" * 15, "9" * 30, "२०१४"],
)
def test_other_texts_are_no_times(bad: str) -> None:
    assert read_time(bad) == (Form.UNREADABLE, 0)


@pytest.mark.parametrize(
    ("times", "granularity", "clock"),
    [
        (["2014-01-01T12:00Z", "2014-01-03T12:00Z"], "day", Clock("2014-01-01", 86_400)),
        (["2014-01-01T12:30Z", "2014-01-01T14:30Z"], "hour", Clock("2014-01-01T12:00:00+00:00", 3600)),
        (["2014-01-01T12:07Z", "2014-01-01T12:37Z"], "15 minutes", Clock("2014-01-01T12:00:00+00:00", 900)),
        (["2014-01-01T12:07:09Z", "2014-01-01T12:14:09Z"], "minute", Clock("2014-01-01T12:07:00+00:00", 60)),
        (["2014-01-01T12:07:09.5Z", "2014-01-01T12:07:10Z"], "second", Clock("2014-01-01T12:07:09+00:00", 1)),
        (["2014-01-01T12:07Z"], "minute", Clock("2014-01-01T12:07:00+00:00", 60)),
        (["2014-01-01", "2014-01-15"], "day", Clock("2014-01-01", 86_400)),
    ],
)
def test_auto_takes_the_coarsest_tick_that_divides_all_gaps(
    make: Import, times: list[str], granularity: str, clock: Clock
) -> None:
    _, data = make(HEADER + "".join(f"a,r,b,{time}\n" for time in times))
    assert (data.granularity, data.clock) == (granularity, clock)


def test_weeks_begin_on_monday(make: Import) -> None:
    _, data = make(HEADER + "a,r,b,2024-05-15\na,r,b,2024-05-19\na,r,b,2024-05-20\n", granularity="week")
    assert [row[3] for row in named(data)] == ["2024-05-13", "2024-05-13", "2024-05-20"]
    assert data.granularity == "week"


def test_seconds_can_be_given(make: Import) -> None:
    _, data = make(HEADER + "a,r,b,1970-01-01T00:00:59Z\na,r,b,1970-01-01T00:01:31Z\n", granularity="30")
    assert (data.granularity, data.clock) == ("30 seconds", Clock("1970-01-01T00:00:30+00:00", 30))
    assert data.times.tolist() == [0, 2]


@pytest.mark.parametrize("granularity", ["fortnight", "0", "-3", "1.5", "9" * 30])
def test_another_granularity_is_refused(make: Import, granularity: str) -> None:
    with pytest.raises(InputError, match=r"--granularity .*: use auto, second, minute, 15min"):
        make(HEADER + "a,r,b,2014-01-01\n", granularity=granularity)


def test_ticks_have_no_granularity_to_choose(make: Import) -> None:
    with pytest.raises(InputError, match="whole ticks"):
        make(HEADER + "a,r,b,5\n", granularity="day")


def test_ticks_before_the_calendar_are_refused(make: Import) -> None:
    with pytest.raises(InputError, match="before the year 1"):
        make(HEADER + "a,r,b,0005-01-01\n", granularity=str(1000 * 365 * 86_400))


@pytest.mark.parametrize(
    "header",
    [
        "Source,Event,Target,Date",
        "s,r,o,t",
        "FROM,Type,TO,Timestamp",
        "actor1,action,actor2,datetime",
        "Source Name,Event Text,Target_Name,Event Date",
    ],
)
def test_usual_headers_are_found_out(make: Import, header: str) -> None:
    _, data = make(f"id,{header}\n1,Ann,met,Bob,2014-03-02\n")
    assert named(data) == [("Ann", "met", "Bob", "2014-03-02")]


@pytest.mark.parametrize(
    ("columns", "header"),
    [
        ({"subject": "who", "time": "4"}, "who,relation,object,when"),
        ({"subject": "WHO", "object": " whom "}, "who,relation,whom,time"),
        ({"subject": "1", "relation": "2", "object": "3", "time": "4"}, "time,object,relation,subject"),
        ({"time": "at"}, "subject,relation,object,at,date,time"),
    ],
)
def test_columns_can_be_given(make: Import, columns: dict[str, str], header: str) -> None:
    _, data = make(f"{header}\nAnn,met,Bob,2014-03-02,,\n", columns=columns)
    assert named(data) == [("Ann", "met", "Bob", "2014-03-02")]


def test_a_file_without_header_is_read_by_numbers(make: Import) -> None:
    columns = {"subject": "1", "relation": "2", "object": "3", "time": "4"}
    _, data = make("Ann,met,Bob,1\nBob,met,Ann,2\n", columns=columns)
    assert named(data) == [("Ann", "met", "Bob", 1), ("Bob", "met", "Ann", 2)]


@pytest.mark.parametrize(
    ("columns", "header", "says"),
    [
        (
            {},
            "who,relation,object,time",
            "line 1: no column for the subject; name it or its number with --subject; the header is 'who'",
        ),
        (
            {},
            "who,what,whom,time",
            "no column for the subject, no column for the relation, no column for the object; .* --subject, "
            "--relation, --object; the header is 'who'",
        ),
        ({}, "s,r,o,date,time", "columns 'date' and 'time' could each be the time; .* --time"),
        ({"object": "x"}, "s,r,o,t", "no column for --object x; the header is 's', 'r', 'o', 't'"),
        ({"object": "9"}, "s,r,o,t", "no column for --object 9"),
        ({"object": "x"}, "s,r,x,t,X,x", "--object x fits 2 columns; give its number"),
        ({"object": "s", "subject": "s"}, "s,r,o,t", "'s' would stand for two things; give another with --subject"),
    ],
)
def test_a_column_that_is_not_clear_is_refused(make: Import, columns: dict[str, str], header: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        make(f"{header}\na,b,c,2014-01-01\n", columns=columns)


GOOD = "".join(f"g{i},r,h{i},2014-01-01\n" for i in range(10))


@pytest.mark.parametrize(
    ("row", "kind", "value"),
    [
        (",r,b,2014-01-01", "empty subject", " | r | b | 2014-01-01"),
        ("a, ,b,2014-01-01", "empty relation", "a |   | b | 2014-01-01"),
        ("a,r,\x01,2014-01-01", "empty object", "a | r | \x01 | 2014-01-01"),
        ("a,r,b, ", "empty time", "a | r | b |  "),
        ("a,r,b,soon", "unreadable time", "soon"),
        ("a,r,b,1388534400", "time in another form than ISO dates", "1388534400"),
        ("a,r,b,2014-01-01T00:00Z", "time in another form than ISO dates", "2014-01-01T00:00Z"),
        ("a,r,b", "too few columns", "3 in place of 4: a | r | b"),
        ("a,r,b,2014-01-01,x", "too many columns", "5 in place of 4: a | r | b | 2014-01-01 | x"),
        ('"a"b,r,b,2014-01-01', "broken quotes", "',' expected after '\"'"),
        (b"a,r,\xff,2014-01-01", "object is not utf-8 text", "?"),
    ],
)
def test_a_row_of_no_use_is_skipped_and_named(make: Import, row: str | bytes, kind: str, value: str) -> None:
    line = row if isinstance(row, bytes) else row.encode()
    imported, data = make(HEADER.encode() + GOOD.encode() + b"\n" + line + b"\r\n" + GOOD.encode())
    assert odd(imported)[kind] == (True, 1, [(13, value)])
    assert imported.skipped == 1
    assert len(data.facts) == 20
    assert "a" not in data.entities and "b" not in data.entities


@pytest.mark.parametrize(
    ("rows", "kind", "count", "examples"),
    [
        ("A,r,b,2014-01-01\na,r,b,2014-01-01\n", "entities that differ only in case or spaces", 1, [(3, "a | A")]),
        (
            "a b,r,c,2014-01-01\nab,r,c,2014-01-01\n",
            "entities that differ only in case or spaces",
            1,
            [(3, "ab | a b")],
        ),
        (
            "a,Met,b,2014-01-01\na,met,b,2014-01-01\n",
            "relations that differ only in case or spaces",
            1,
            [(3, "met | Met")],
        ),
        ("a,r,b,2014-01-01\na,r,b,2014-01-01\n", "repeated facts", 1, [(3, "a | r | b | 2014-01-01")]),
        ("a,r,b,2014-01-01\na,r,a,2014-01-02\n", "subject is also the object", 1, [(3, "a | r | a | 2014-01-02")]),
        ('"a\nb",r,c,2014-01-01\n', "control characters, now spaces", 1, [(2, r"a\nb")]),
        (
            "a,r,b,2014-01-01T00:00Z\na,r,b,2014-01-01T01:00\n",
            "times without a zone among others, taken as UTC",
            1,
            [(3, "2014-01-01T01:00")],
        ),
    ],
)
def test_an_odd_row_is_kept_and_named(
    make: Import, rows: str, kind: str, count: int, examples: list[tuple[int, str]]
) -> None:
    imported, data = make(HEADER + rows)
    assert odd(imported) == {kind: (False, count, examples)}
    assert len(data.facts) == rows.count(",2014")
    assert imported.skipped == 0


def test_no_more_than_five_examples_are_given_and_long_ones_are_cut(make: Import) -> None:
    imported, _ = make(HEADER + GOOD + f"a,r,b,{'x' * 500}\n" * 9)
    ((_, count, examples),) = odd(imported).values()
    assert (count, len(examples), len(examples[0][1])) == (9, 5, 80)


def test_a_line_number_counts_the_lines_inside_quotes(make: Import) -> None:
    imported, _ = make("\n" + HEADER + GOOD + '"a\n\nb",r,c,2014-01-01\nx,r,y,soon\n')
    assert odd(imported)["unreadable time"][2] == [(16, "soon")]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "events.csv is empty"),
        ("\n\n", "events.csv is empty"),
        (HEADER, "has no rows after its header"),
        (HEADER + "a,r,b,soon\n", "1 of 1 rows cannot be used .*first on line 2: 'soon'.*ISO 8601"),
        (HEADER + "a,r,b,2014-01-01\n,r,b,2014-01-01\na,r,,2014-01-01\n", "2 of 3 rows cannot be used .*--delimiter"),
        (HEADER + GOOD + '"a,r,b,2014-01-01\n' + GOOD, "line 12: a quote opens here that never closes"),
        (HEADER + GOOD + '"a,r,b,2014-01-01\n' + GOOD * 2000, "line 12: a quote opens here that never closes"),
        (HEADER.encode("utf-16"), "line 1: not utf-8 text; give its --encoding"),
        (gzip.compress(HEADER.encode() * 1000, mtime=0)[:-9], "cannot be unpacked"),
        ('"subject",relation,"object\n', "line 1: not a header"),
        (f"subject,relation,{'o' * 140_000}\n", "line 1: not a header .field larger than field limit"),
    ],
)
def test_what_cannot_be_imported_leaves_nothing_behind(
    make: Import, tmp_path: Path, content: str | bytes, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        make(content)
    assert [path.name for path in tmp_path.iterdir()] == ["events.csv"]


@pytest.mark.parametrize(
    ("content", "name", "options"),
    [
        (b"\xef\xbb\xbf" + HEADER.encode() + "Zoë,r,🦊,2014-01-01".encode(), "bom.csv", {}),
        ((HEADER + "Zoë,r,🦊,2014-01-01\n").replace("\n", "\r\n").encode(), "crlf.csv", {}),
        ((HEADER + "Zoë,r,🦊,2014-01-01\n").replace("\n", "\r").encode(), "cr.csv", {}),
        ((HEADER + "Zoë,r,🦊,2014-01-01\n").replace(",", "\t").encode(), "tabs.tsv", {}),
        ((HEADER + "Zoë,r,🦊,2014-01-01\n").replace(",", ":").encode(), "colons.csv", {"delimiter": ":"}),
        ((HEADER + "Zoë,r,🦊,2014-01-01\n").replace(",", "\t").encode(), "tabs.csv", {"delimiter": "tab"}),
        (gzip.compress((HEADER + "Zoë,r,🦊,2014-01-01\n").encode(), mtime=0), "packed.csv.gz", {}),
        ((HEADER + "Zoë,r,🦊,2014-01-01\n").encode("utf-16"), "wide.csv", {"encoding": "utf-16"}),
        ((HEADER + "Zoë,r,🦊,2014-01-01\n").encode("gb18030"), "other.csv", {"encoding": "gb18030"}),
        (("note,, " + HEADER + ',"a,b",Zoë,r,🦊,2014-01-01\n').encode(), "wider.csv", {}),
    ],
)
def test_files_of_many_kinds_are_read(make: Import, content: bytes, name: str, options: dict[str, object]) -> None:
    _, data = make(content, name, **options)
    assert named(data) == [("Zoë", "r", "🦊", "2014-01-01")]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"encoding": "klingon"}, "--encoding klingon"),
        ({"encoding": "hex"}, "--encoding hex"),
        ({"delimiter": "::"}, "--delimiter '::'"),
    ],
)
def test_an_option_that_means_nothing_is_refused(make: Import, options: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        make(HEADER + GOOD, **options)


def test_a_source_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for source in (tmp_path, tmp_path / "nothing.csv"):
        with pytest.raises(InputError, match="cannot read"):
            import_csv(source, tmp_path / "graph")


def test_a_place_that_cannot_be_written_is_named(make: Import, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AdatkgError, match="cannot be written"):
        import_csv(io.BytesIO((HEADER + GOOD).encode()), tmp_path / "file" / "graph")


def test_a_data_set_is_replaced_only_on_request(make: Import, tmp_path: Path) -> None:
    make(HEADER + "a,r,b,2014-01-01\n")
    with pytest.raises(InputError, match=r"exists already: .*--replace"):
        make(HEADER + "c,r,d,2015-01-01\n")
    assert named(load_dataset(str(tmp_path / "graph"))) == [("a", "r", "b", "2014-01-01")]
    with pytest.raises(InputError, match="rows cannot be used"):
        make(HEADER + "c,r,d,soon\n", replace=True)
    assert named(load_dataset(str(tmp_path / "graph"))) == [("a", "r", "b", "2014-01-01")]
    _, data = make(HEADER + "c,r,d,2015-01-01\n", replace=True)
    assert named(data) == [("c", "r", "d", "2015-01-01")]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["events.csv", "graph"]


def test_a_folder_with_other_files_is_never_replaced(make: Import, tmp_path: Path) -> None:
    make(HEADER + "a,r,b,2014-01-01\n")
    (tmp_path / "graph" / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match=r"holds more than a data set \(thesis.tex\)"):
        make(HEADER + "c,r,d,2015-01-01\n", replace=True)
    assert (tmp_path / "graph" / "thesis.tex").exists()


def test_progress_is_told_in_bytes(tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    file.write_text(HEADER + GOOD * 1000)
    told: list[tuple[int, int]] = []
    import_csv(file, tmp_path / "graph", on_progress=lambda done, total: told.append((done, total)))
    assert len(told) > 2
    assert told == sorted(told)
    assert told[-1] == (file.stat().st_size, file.stat().st_size)


@pytest.mark.parametrize("content", ["{", '{"origin": "2014-01-01"}', '{"origin": "soon", "seconds": 1}', "\xff"])
def test_a_damaged_clock_is_named(make: Import, tmp_path: Path, content: str) -> None:
    make(HEADER + GOOD)
    (tmp_path / "graph" / "clock.json").write_text(content, encoding="latin-1")
    with pytest.raises(InputError, match=r"clock\.json.*`origin`"):
        load_dataset(str(tmp_path / "graph"))


def test_the_calendar_outranks_the_name(tmp_path: Path) -> None:
    import_csv(io.BytesIO((HEADER + "a,r,b,2020-01-01\n").encode()), tmp_path / "icews14")
    assert load_dataset(str(tmp_path / "icews14")).clock == Clock("2020-01-01", 86_400)

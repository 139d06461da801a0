from __future__ import annotations

import subprocess
import sys

import pytest

from adatkg_core.clock import Clock
from adatkg_core.datasets import load_dataset
from adatkg_core.engine import Admission
from adatkg_core.engine.admission import object_to_relation
from adatkg_core.events import Fact
from adatkg_core.state import Relations

KNOWN = Relations(load_dataset("icews14").relations)
CLOCK = Clock("2014-01-01")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("consult", "Consult"),
        ("Consutl", "Consult"),
        ("make_statement", "Make statement"),
        ("Make visit", "Make a visit"),
        ("praise", "Praise or endorse"),
    ],
)
def test_a_slip_of_the_pen_finds_what_was_meant(said: str, meant: str) -> None:
    assert KNOWN.nearest(said)[0] == meant
    assert f"did you mean {meant!r}" in object_to_relation(said, KNOWN)[1]


@pytest.mark.parametrize("name", ["Envy", "", "Рассердиться", "_", "x" * 1_000])
def test_what_is_like_nothing_gets_no_suggestion(name: str) -> None:
    assert KNOWN.nearest(name) == ()
    assert "did you mean" not in object_to_relation(name, KNOWN)[1]


def test_of_thousands_of_relations_that_share_their_letters_one_is_still_found() -> None:
    many = Relations([f"sends goods by way of depot {i} to" for i in range(5_000)])
    assert many.nearest("send goods by way of depot 4711")[0] == "sends goods by way of depot 4711 to"


@pytest.mark.slow
def test_every_process_suggests_the_same() -> None:
    program = (
        "from adatkg_core.state.relations import Relations; from adatkg_core.datasets import load_dataset;"
        "known = Relations(load_dataset('icews14').relations);"
        "print([known.nearest(name) for name in ('express intent', 'make', 'appeal for aid', 'threaten')])"
    )
    said = {
        subprocess.check_output([sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, text=True)
        for seed in ("1", "2")
    }
    assert len(said) == 1 and "Threaten" in said.pop()


def test_objections_name_times_in_the_calendar_where_there_is_one() -> None:
    fact = Fact("a", "Consult", "b", 3)
    assert Admission(10, "refuse", 5, KNOWN, CLOCK).object_to_fact(fact) == (
        "late",
        "late: time 2014-01-04 is before the watermark 2014-01-11",
    )
    assert Admission(10, "refuse", 5, KNOWN).object_to_fact(fact) == ("late", "late: time 3 is before the watermark 10")
    ahead = Fact("a", "Consult", "b", 30)
    assert Admission(10, "apply", 5, KNOWN, CLOCK).object_to_fact(ahead) == (
        "far-future",
        "time 2014-01-31 is more than 5 ticks ahead of 2014-01-11",
    )

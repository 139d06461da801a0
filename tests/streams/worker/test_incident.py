"""An incident is one thing, wherever it is looked at."""

from __future__ import annotations

from collections import Counter

from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.messages import Reason
from streams.worker import Arrival, BatchResult, IncidentKind, Incidents, Metrics, Rejected
from streams.worker.incident import kind_of
from tests.support.fake_worker import fact


def test_an_incident_is_counted_once_while_it_lasts_and_each_loss_is_counted() -> None:
    heard: list[IncidentKind] = []
    incidents = Incidents(lambda incident: heard.append(incident.kind))
    for _ in range(3):
        incidents.report("g", IncidentKind.UNREACHABLE, "away", again_in=1.0)
        incidents.report("g", IncidentKind.RECORDS_LOST, "gone")
    assert heard.count(IncidentKind.UNREACHABLE) == 1 and heard.count(IncidentKind.RECORDS_LOST) == 3
    since = incidents.open()[0].since
    incidents.end("g", IncidentKind.UNREACHABLE)
    assert [one.kind for one in incidents.open()] == [IncidentKind.RECORDS_LOST] and since <= incidents.open()[0].since
    incidents.forget("g")
    assert incidents.open() == []


def test_an_error_is_an_incident_of_the_kind_that_tells_what_to_do() -> None:
    assert kind_of(InputError("damaged")) is IncidentKind.BAD_ARTIFACT
    assert kind_of(AdatkgError("away")) is IncidentKind.UNREACHABLE
    assert kind_of(KeyError("engine")) is IncidentKind.FAILED


def test_metrics_and_pages_show_the_same_incidents() -> None:
    metrics = Metrics()
    incidents = Incidents(metrics.count_incident)
    incidents.report("g", IncidentKind.UNREACHABLE, "away", again_in=60.0)
    metrics.show_incidents(incidents.open())
    labels = {"graph": "g", "kind": "unreachable"}
    assert metrics.registry.get_sample_value("adatkg_open_incidents", labels) == 1
    assert metrics.registry.get_sample_value("adatkg_incidents_total", labels) == 1
    (shown,) = [incident.as_json() for incident in incidents.open()]
    assert (shown["graph"], shown["kind"], shown["detail"]) == ("g", "unreachable", "away")
    assert shown["since"] < shown["next_try"]
    incidents.end("g", IncidentKind.UNREACHABLE)
    metrics.show_incidents(incidents.open())
    assert metrics.registry.get_sample_value("adatkg_open_incidents", labels) is None
    assert metrics.registry.get_sample_value("adatkg_incidents_total", labels) == 1


def test_dead_letters_have_few_series_however_many_names_and_reasons_come() -> None:
    metrics = Metrics()
    arrival: Arrival = fact(0)
    for number in range(50):
        rejected = [Rejected(arrival, Reason.NO_MODEL, ""), Rejected(arrival, f"made-up-{number}", "")]
        metrics.count(BatchResult(f"misspelt-{number}", rejected=rejected, counts=Counter()))
    series = [
        tuple(sample.labels.values())
        for family in metrics.dead_letters.collect()
        for sample in family.samples
        if sample.name.endswith("_total")
    ]
    assert sorted(series) == [("", "no-model"), ("", "other")]

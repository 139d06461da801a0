"""Which bundle answers: the one way in which that changes, whoever decides it. The store first, then the workers."""

from __future__ import annotations

from collections.abc import Callable

from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.messages import Announcement, Verdict
from adatkg_core.storage import Bundle, ModelStore, verdict_on, why_unfit
from streams.kafka import Connection, Topics, announce, ensure_topics

Tell = Callable[[Announcement], None]
Reach = Callable[[], Tell]
Warn = Callable[[str], None]


def open_store(url: str, graph: str | None = None) -> ModelStore:
    """The model store; a graph that is given must have bundles there."""
    store = ModelStore(url)
    if graph is not None and graph not in store.graphs():
        known = ", ".join(store.graphs()) or "none"
        raise InputError(f"{url}: no bundles of graph {graph}, only of: {known}; check the name and --models")
    return store


def known_version(store: ModelStore, graph: str, version: str) -> str:
    """The version, which must be in the store."""
    if version not in store.versions(graph):
        known = ", ".join(store.versions(graph)) or "none"
        raise InputError(f"{store.url}: graph {graph} has no bundle {version}; it has {known}")
    return version


def promote(
    store: ModelStore,
    graph: str,
    version: str,
    reach: Reach,
    warn: Warn,
    *,
    reason: str = "promoted by hand",
    forced: bool = False,
) -> str | None:
    """Make a bundle the one that answers, unless it is not fit; returns the one before.

    `reach` finds the workers before the store is changed; what it gives hears of the change.
    """
    before = store.present(graph)
    verdict = verdict_on(store, graph, known_version(store, graph, version))
    _check(store, graph, version, verdict, forced, warn)
    tell = reach()
    why = f"{reason}, by force" if forced else reason
    carry_out(store, Announcement(graph, version, "present", why, forced=forced, verdict=verdict), tell)
    return before


def carry_out(store: ModelStore, decided: Announcement, tell: Tell) -> None:
    """Do what was decided about a bundle that was found fit, or was not; done again, it changes nothing."""
    if decided.status == "present":
        store.make_present(decided.graph, decided.version)
    why = {"status": decided.status, "reason": decided.reason, "forced": decided.forced}
    store.add_note(decided.graph, decided.version, **why)
    tell(decided)


def require_unchanged(store: ModelStore, decided: Announcement, against: str | None) -> None:
    """Raise where another bundle has become present than the one that this one was judged against.

    A trainer may be stopped for minutes between the brokers' word that it is the only one and its next step.
    """
    present = store.present(decided.graph)
    if decided.status == "present" and present not in (against, decided.version):
        raise AdatkgError(
            f"{store.url}: bundle {decided.version} of graph {decided.graph} was judged against {against}, but "
            f"{present} has become present since; the next round judges it anew"
        )


def roll_back(store: ModelStore, graph: str, reach: Reach, warn: Warn) -> tuple[str, str]:
    """Bring back the bundle that answered before the present one; returns it, and the one that was present."""
    line = store.line(graph)
    if len(line) > 1 and line[1] in store.versions(graph):  # else the store says what is missing
        _check(store, graph, line[1], None, True, warn)
    tell = reach()
    version = store.roll_back(graph)
    store.add_note(graph, version, forced=True)
    store.add_note(graph, line[0], status="candidate", reason=f"rolled back by hand to {version}")
    tell(Announcement(graph, version, "present", "rolled back by hand", forced=True, verdict=None))
    return version, line[0]


def teller(connection: Connection, topics: Topics, store: str) -> Tell:
    """What tells the workers. Brokers that do not answer are found out now, before the store is changed."""
    ensure_topics(connection, topics)

    def tell(announcement: Announcement) -> None:
        try:
            announce(connection, topics, announcement)
        except AdatkgError as error:
            remedy = f"`adatkg models promote {announcement.graph} {announcement.version} --force`"
            raise AdatkgError(
                f"{store}: bundle {announcement.version} of graph {announcement.graph} is present, but running workers "
                f"were not told; tell them with {remedy}: {error}"
            ) from error

    return tell


def tell_nobody(announcement: Announcement) -> None:
    """Workers learn of it when they look into the store: at their next start, or for a graph that had no model."""


def _check(store: ModelStore, graph: str, version: str, verdict: Verdict | None, forced: bool, warn: Warn) -> None:
    """Raise for a bundle that must not answer; a present one that cannot be read is no reason to keep it."""
    candidate = store.bundle(graph, version)
    present: Bundle | None = None
    now = store.present(graph)
    if now is not None and now != version:
        try:
            present = store.bundle(graph, now)
        except AdatkgError as error:
            warn(f"the present bundle cannot be compared with: {error}")
    if (reason := why_unfit(candidate, present, graph, verdict, forced)) is not None:
        raise InputError(f"{store.url}: {reason}")

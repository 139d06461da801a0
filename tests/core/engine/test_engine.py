"""An answer is a function of the log before it and of the model: no batch, restart, later fact or query changes it."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec import structs

from adatkg_core.engine import Engine, Observed, Snapshot
from adatkg_core.errors import InputError
from adatkg_core.events import Fact, Query, Ranking, Refusal
from adatkg_core.storage import read_artifact, write_artifact
from adatkg_core.text.encoder import HashEncoder
from tests.support.small_graph import (
    CONFIGURATIONS,
    ENCODER,
    EVERYTHING,
    PER_ENTITY,
    Event,
    Tick,
    assert_same_answers,
    assert_same_bits,
    assert_same_snapshot,
    bits,
    engine_with_past,
    fresh_engine,
    named,
    play,
    shared_model,
    small_config,
    small_graph,
    small_model,
)

GRAPH = small_graph()
RELATIONS = GRAPH.relations
NOW = int(GRAPH.facts[-1, 3])  # the watermark of an engine with a past
KNOWN = [*dict.fromkeys(GRAPH.entities[row] for row in GRAPH.facts[-30:, 0])][:8]
# As names with groups are written; to most configurations they are names like any other.
NEW = ["Court (Zubrowka)", "Bank (Lilliput)", "Zubrowka", "Bank (Zubrowka)", "Court (Lilliput)"]
NAMES = [*KNOWN, *NEW]
UNHEARD = ["Nobody at all", "Guard (Zubrowka)", "Court (Laputa)", "Laputa", "Guard (Laputa)"]  # in no fact

each_configuration = pytest.mark.parametrize("name", CONFIGURATIONS)
# Without the search for a smaller failing log, which would take minutes for each test that fails.
few = settings(
    max_examples=int(os.environ.get("ADATKG_EXAMPLES", "3")),  # for each of a dozen configurations
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)

name_of = st.sampled_from(NAMES)
relation_of = st.sampled_from(RELATIONS)


@st.composite
def facts_at(draw: st.DrawFn, time: int, least: int = 1) -> list[Fact]:
    fact = st.builds(Fact, name_of, relation_of, name_of, st.just(time))
    return draw(st.lists(fact, min_size=least, max_size=6))


@st.composite
def queries_at(draw: st.DrawFn, time: int) -> Query:
    asked = draw(st.sampled_from([*NAMES, *UNHEARD]))
    ranked = draw(st.lists(st.sampled_from([*NAMES, *UNHEARD]), max_size=2))
    hidden = draw(st.lists(name_of, max_size=2))
    k = EVERYTHING if ranked else draw(st.sampled_from([1, 4, EVERYTHING]))
    query = Query(draw(relation_of), time, s=asked, k=k, rank_of=tuple(ranked), exclude=tuple(hidden))
    return replace(query, s=None, o=asked) if draw(st.booleans()) else query


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    """Facts, queries and ticks as they may stand in a log: some late, some far ahead, some of unknown relations."""
    log: list[Event] = []
    time = NOW
    for _ in range(draw(st.integers(2, 5))):
        time += draw(st.sampled_from([0, 1, 1, 2, 9]))
        block: list[Event] = [*draw(facts_at(time))]
        late = draw(st.lists(st.builds(Fact, name_of, relation_of, name_of, st.just(time - 1)), max_size=1))
        wrong = draw(st.lists(st.sampled_from([Fact(NEW[0], "Unheard of", NEW[1], time)]), max_size=1))
        far = draw(st.lists(st.sampled_from([Fact(NEW[2], RELATIONS[0], NEW[3], time + 5_000)]), max_size=1))
        asked = [draw(queries_at(time + draw(st.sampled_from([-1, 0, 1, 3])))) for _ in range(draw(st.integers(1, 3)))]
        log += draw(st.permutations([*block, *late, *wrong, *far, *asked]))
        if draw(st.booleans()):
            time += draw(st.sampled_from([0, 1, 4]))
            log.append(Tick(time))
    log.append(draw(queries_at(time + 1)))
    return log


def start(name: str, with_past: bool) -> Engine:
    return engine_with_past(name) if with_past else fresh_engine(name)


def through_a_file(snapshot: Snapshot) -> Snapshot:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "snapshot")
        write_artifact(place, "snapshot", snapshot.tensors, snapshot.meta)
        return Snapshot(*read_artifact(place, "snapshot"))


# -- batches and restarts -----------------------------------------------------------------------------------------


@each_configuration
@few
@given(data=st.data())
def test_splitting_a_log_into_batches_changes_no_answer_and_no_bit_of_the_state(name: str, data: st.DataObject) -> None:
    log, with_past = data.draw(logs()), data.draw(st.booleans())
    cuts = data.draw(st.sets(st.integers(1, len(log))))
    whole, split, single = start(name, with_past), start(name, with_past), start(name, with_past)
    answers = play(whole, log)
    assert any(isinstance(answer, Ranking) for answer in answers)
    assert_same_answers(play(split, log, cuts), answers)
    assert_same_answers(play(single, log, range(len(log))), answers)
    assert_same_snapshot(split.snapshot(), whole.snapshot())
    assert_same_snapshot(single.snapshot(), whole.snapshot())


@each_configuration
@few
@given(data=st.data())
def test_a_restart_from_a_snapshot_anywhere_changes_no_answer_and_no_bit_of_the_state(
    name: str, data: st.DataObject
) -> None:
    log, with_past = data.draw(logs()), data.draw(st.booleans())
    place = data.draw(st.integers(0, len(log)))
    steady, first = start(name, with_past), start(name, with_past)
    answers = play(steady, log)
    before = play(first, log[:place])
    saved = first.snapshot()
    second = fresh_engine(name)
    second.restore(through_a_file(saved) if data.draw(st.booleans()) else saved)
    assert_same_snapshot(second.snapshot(), saved)
    assert_same_answers(before + play(second, log[place:]), answers)
    assert_same_snapshot(second.snapshot(), steady.snapshot())


def test_a_snapshot_is_a_copy_that_later_facts_do_not_reach() -> None:
    engine = engine_with_past()
    saved = engine.snapshot()
    tensors = {name: tensor.clone() for name, tensor in saved.tensors.items()}
    names = list(saved.meta["entities"])
    engine.observe([Fact(NEW[0], RELATIONS[0], KNOWN[0], NOW + 1), Fact(KNOWN[1], RELATIONS[1], KNOWN[0], NOW + 2)])
    assert_same_bits(saved.tensors, tensors)
    assert saved.meta["entities"] == names
    again = fresh_engine()
    again.restore(saved)
    again.observe([Fact(NEW[0], RELATIONS[0], KNOWN[0], NOW + 1)])
    assert_same_bits(saved.tensors, tensors)


def test_restoring_over_a_used_engine_leaves_nothing_of_its_own_past() -> None:
    used = engine_with_past()
    used.observe([Fact(name, RELATIONS[0], KNOWN[0], NOW + 1) for name in NEW])
    used.predict([Query(RELATIONS[0], NOW + 2, s=KNOWN[0])])
    clean = fresh_engine()
    clean.observe(named(GRAPH.facts[:20].tolist()))
    used.restore(clean.snapshot())
    assert_same_snapshot(used.snapshot(), clean.snapshot())
    asked = [Query(r, NOW + 2, s=s, k=EVERYTHING) for r in RELATIONS for s in [*KNOWN, *NEW]]
    assert_same_answers(used.predict(asked), clean.predict(asked))


@pytest.mark.parametrize("other", ["memoryless", "attention", "model-alone"])
def test_a_snapshot_of_another_model_is_refused_and_changes_nothing(other: str) -> None:
    engine = engine_with_past()
    before = engine.snapshot()
    with pytest.raises(InputError, match="other parameters"):
        engine.restore(engine_with_past(other).snapshot())
    assert_same_snapshot(engine.snapshot(), before)


def test_a_snapshot_with_other_relations_is_refused() -> None:
    engine = fresh_engine()
    strange = Engine(small_model(small_config(), relations=3), RELATIONS[:3], ENCODER)
    with pytest.raises(InputError, match="relations"):
        engine.restore(strange.snapshot())


# -- causality ----------------------------------------------------------------------------------------------------


@each_configuration
@few
@given(data=st.data())
def test_no_fact_at_or_after_its_time_changes_a_query(name: str, data: st.DataObject) -> None:
    time = NOW + data.draw(st.integers(1, 3))
    query = data.draw(queries_at(time))
    past = data.draw(facts_at(time - 1))
    future = data.draw(facts_at(time))
    future += data.draw(facts_at(time + 2, least=0))
    alone, crowded = engine_with_past(name), engine_with_past(name)
    alone.observe(past)
    crowded.observe([*past, *future[:1]] if len(future) == 1 else past)
    crowded.observe(future)
    # An answer as of the time of the later watermark would be another question, so only facts of `time` remain.
    if crowded.watermark == time:
        assert_same_answers(crowded.predict([query]), alone.predict([query]))
    together = engine_with_past(name)
    answers = play(together, [*past, query, *future, Tick(time + 3)])
    assert_same_answers(answers, alone.predict([query]))


@each_configuration
@few
@given(data=st.data())
def test_a_query_gives_the_same_answer_wherever_it_stands_among_the_facts_of_its_time(
    name: str, data: st.DataObject
) -> None:
    time = NOW + data.draw(st.integers(0, 2))
    facts = data.draw(facts_at(time, least=2))
    query = data.draw(queries_at(time))
    wanted = play(engine_with_past(name), [Tick(time), query])
    for place in range(len(facts) + 1):
        log: list[Event] = [*facts[:place], query, *facts[place:]]
        assert_same_answers(play(engine_with_past(name), log), wanted)
        assert_same_answers(play(engine_with_past(name), log, range(len(log))), wanted)


def test_an_entity_is_a_candidate_only_from_the_time_after_its_first_fact() -> None:
    def candidates(time: int) -> set[str]:
        answer = engine.predict([Query(RELATIONS[0], time, s="a", k=EVERYTHING)])[0]
        assert isinstance(answer, Ranking)
        return {one.entity for one in answer.top}

    engine = fresh_engine()
    engine.observe([Fact("a", RELATIONS[0], "b", 1), Fact("c", RELATIONS[0], "d", 2), Fact("e", RELATIONS[0], "f", 2)])
    assert candidates(2) == {"a", "b"}
    assert candidates(3) == {"a", "b", "c", "d", "e", "f"}
    engine.observe([Fact("g", RELATIONS[0], "h", 1)])
    assert candidates(2) == {"a", "b"}
    engine.observe([Fact("i", RELATIONS[0], "a", 3)])
    assert candidates(3) == set("abcdefgh")
    engine.advance(4)
    assert candidates(4) == set("abcdefghi")


@each_configuration
@few
@given(data=st.data())
def test_queries_never_change_the_state(name: str, data: st.DataObject) -> None:
    engine = engine_with_past(name)
    engine.observe(data.draw(facts_at(NOW, least=0)))
    before = engine.snapshot()
    queries = [data.draw(queries_at(NOW + data.draw(st.integers(-2, 4)))) for _ in range(3)]
    queries.append(Query(RELATIONS[0], NOW + 1, s="Nobody", rank_of=tuple(f"Stranger {i}" for i in range(40))))
    first = engine.predict(queries)
    assert_same_snapshot(engine.snapshot(), before)
    assert_same_answers(engine.predict(queries), first)


def test_a_recent_fact_does_change_a_later_query() -> None:
    for name in CONFIGURATIONS:
        query = Query(RELATIONS[0], NOW + 2, s=KNOWN[0], k=EVERYTHING)
        engine = engine_with_past(name)
        before = engine.predict([query])[0]
        engine.observe([Fact(KNOWN[0], RELATIONS[0], KNOWN[3], NOW + 1)])
        after = engine.predict([query])[0]
        assert isinstance(before, Ranking) and isinstance(after, Ranking)
        old = {answer.entity: answer.score for answer in before.top}
        assert max(abs(answer.score - old[answer.entity]) for answer in after.top) > 1e-3, name
        assert after.interactions == before.interactions + 1


# -- groups in names ----------------------------------------------------------------------------------------------


def engine_with_groups() -> Engine:
    """An engine that has seen much inside the groups of names, so that more is worth proposing than may be."""
    engine = fresh_engine("groups")
    countries = ["Zubrowka", "Lilliput", "Laputa"]
    for time in range(3):
        facts = [(f"Court ({one})", f"Bank ({one})") for one in countries[1:]]
        facts += [(f"Court ({one})", one) for one in countries] + [(one, f"Court ({one})") for one in countries]
        facts += [("Court (Zubrowka)", KNOWN[time]), (KNOWN[time], KNOWN[time + 1]), (KNOWN[time + 3], "Zubrowka")]
        engine.observe([Fact(s, relation, o, time) for s, o in facts for relation in RELATIONS[:2]])
    return engine


# Of a known role and group, of a new role, of a new group, the head of one, and of neither.
ELSEWHERE = ["Bank (Zubrowka)", "Guard (Zubrowka)", "Bank (Utopia)", "Guard (Utopia)", "Utopia"]
WITH_GROUPS = ["Court (Zubrowka)", "Zubrowka", "Court (Lilliput)", KNOWN[0], *ELSEWHERE]


@pytest.mark.parametrize("stranger", ELSEWHERE)
def test_a_strangers_name_changes_no_other_answer_of_its_batch(stranger: str) -> None:
    engine = engine_with_groups()
    queries = [Query(relation, 4, s=name, k=EVERYTHING) for name in WITH_GROUPS for relation in RELATIONS[:2]]
    alone = [engine.predict([query])[0] for query in queries]
    together = engine.predict([*queries, Query(RELATIONS[0], 4, s=KNOWN[0], rank_of=(stranger,))])[:-1]
    assert_same_answers(together, alone)
    for query, wanted in zip(queries, alone, strict=True):
        assert_same_answers(engine.predict([query, Query(RELATIONS[1], 4, s=stranger)])[:1], [wanted])


@pytest.mark.parametrize("newcomer", ELSEWHERE)
def test_a_name_that_comes_with_a_fact_of_its_time_changes_no_query(newcomer: str) -> None:
    alone, crowded = engine_with_groups(), engine_with_groups()
    alone.advance(4)
    crowded.observe([Fact(newcomer, RELATIONS[0], "Zubrowka", 4), Fact(KNOWN[5], RELATIONS[0], newcomer, 4)])
    for name in WITH_GROUPS:
        for relation in RELATIONS[:2]:
            query = Query(relation, 4, s=name, k=EVERYTHING, rank_of=tuple(ELSEWHERE))
            assert_same_answers(crowded.predict([query]), alone.predict([query]))


# -- memory that is not there -------------------------------------------------------------------------------------


def without_memory(name: str) -> Engine:
    """The same parameters with the memory branch cut off."""
    model = shared_model(name)
    config = replace(model.config, model=replace(model.config.model, memory="none"))
    bare = small_model(config)
    missing = bare.load_state_dict(model.state_dict(), strict=False)
    assert not missing.missing_keys
    assert all(key.startswith("memory") for key in missing.unexpected_keys)
    return Engine(bare, RELATIONS, ENCODER, entities=NAMES)


WITH_MEMORY = [name for name in CONFIGURATIONS if name not in ("memoryless", "recall-alone")]


@pytest.mark.parametrize("name", WITH_MEMORY)
def test_where_nobody_has_an_update_every_score_is_bitwise_that_without_memory(name: str) -> None:
    rows = torch.arange(len(NAMES)).repeat(2 * len(RELATIONS))
    kinds = torch.arange(2 * len(RELATIONS)).repeat_interleave(len(NAMES))
    found = [
        torch.cat([scores for _, scores in engine.score_rows(rows, kinds, 3)])
        for engine in (fresh_engine(name, entities=NAMES), without_memory(name))
    ]
    assert found[0].std() > 1e-3
    assert bits(found[0]) == bits(found[1])


@pytest.mark.parametrize("name", WITH_MEMORY)
def test_in_a_graph_with_a_past_an_entity_without_an_update_scores_bitwise_as_without_memory(name: str) -> None:
    engines = fresh_engine(name, entities=NAMES), without_memory(name)
    for engine in engines:
        engine.observe(named(GRAPH.facts.tolist()))
    rows = torch.tensor(engines[0].catalog.rows(NAMES))
    untouched = rows[engines[0].state.tensors["interactions"][rows] == 0]
    touched = rows[engines[0].state.tensors["interactions"][rows] > 0]
    assert len(untouched) >= len(NEW) and len(touched) > 0
    asked = torch.cat((untouched, touched))
    kinds = torch.arange(len(asked)) % len(RELATIONS)
    with_memory, bare = (
        torch.cat([scores for _, scores in engine.score_rows(asked, kinds, NOW + 1)]) for engine in engines
    )
    n = len(untouched)
    assert bits(with_memory[:n, untouched]) == bits(bare[:n, untouched])
    assert not torch.equal(with_memory[n:, touched], bare[n:, touched])
    views = [engine.model.view(engine.state, torch.arange(engine.state.entities)) for engine in engines]
    assert bits(views[0].fused[untouched]) == bits(views[1].fused[untouched])
    assert bool((views[0].gate[untouched] == 0).all())
    assert bool((views[0].gate[touched] > 0).all())


# -- ranks and exclusions -----------------------------------------------------------------------------------------


@each_configuration
@few
@given(data=st.data())
def test_rank_of_and_exclude_change_no_score(name: str, data: st.DataObject) -> None:
    engine = engine_with_past(name)
    asked = replace(data.draw(queries_at(NOW + 1)), k=EVERYTHING)
    plain = replace(asked, rank_of=(), exclude=())
    wanted, found = engine.predict([plain])[0], engine.predict([asked])[0]
    assert isinstance(wanted, Ranking) and isinstance(found, Ranking)
    scores = {answer.entity: answer.score for answer in wanted.top}
    assert {answer.entity for answer in found.top} == scores.keys() - set(asked.exclude)
    # A stranger among those to be ranked is one more column, which may change how a sum is ordered.
    allowed = 0.0 if set(asked.rank_of) <= set(engine.catalog.names) else 1e-5
    assert all(abs(answer.score - scores[answer.entity]) <= allowed for answer in found.top)


@each_configuration
@few
@given(data=st.data())
def test_a_rank_is_that_of_brute_force_over_the_scores(name: str, data: st.DataObject) -> None:
    engine = engine_with_past(name)
    targets = tuple(data.draw(st.lists(st.sampled_from(KNOWN), min_size=1, max_size=3)))
    hidden = tuple(data.draw(st.lists(st.sampled_from(KNOWN), max_size=4)))
    query = Query(data.draw(relation_of), NOW + 1, s=data.draw(name_of), k=EVERYTHING)
    full, ranked = engine.predict([query, replace(query, rank_of=targets, exclude=hidden)])
    assert isinstance(full, Ranking) and isinstance(ranked, Ranking)
    scores = {answer.entity: answer.score for answer in full.top}
    for target in targets:
        others = [score for entity, score in scores.items() if entity != target and entity not in hidden]
        above = sum(score > scores[target] for score in others)
        level = sum(score >= scores[target] for score in others)
        assert ranked.ranks[target] == 1 + (above + level) / 2


def test_an_entity_that_is_no_candidate_yet_is_ranked_as_if_it_were_one() -> None:
    engine = engine_with_past()
    query = Query(RELATIONS[0], NOW + 1, s=KNOWN[0], k=EVERYTHING, rank_of=(NEW[0],))
    stranger = engine.predict([query])[0]
    engine.register([NEW[0]])
    listed = engine.predict([query])[0]
    assert isinstance(stranger, Ranking) and isinstance(listed, Ranking)
    assert NEW[0] not in {answer.entity for answer in stranger.top}
    assert NEW[0] in {answer.entity for answer in listed.top}
    assert stranger.ranks == listed.ranks


def test_probabilities_are_those_of_all_candidates_and_the_list_is_in_order() -> None:
    engine = engine_with_past()
    full, few_only = engine.predict([Query(RELATIONS[1], NOW + 1, s=KNOWN[0], k=k) for k in (EVERYTHING, 3)])
    assert isinstance(full, Ranking) and isinstance(few_only, Ranking)
    assert len(full.top) == len(engine.catalog) and len(few_only.top) == 3
    assert sum(answer.probability for answer in full.top) == pytest.approx(1, abs=1e-5)
    scores = [answer.score for answer in full.top]
    assert scores == sorted(scores, reverse=True)
    for few, answer in zip(few_only.top, full.top[:3], strict=True):  # two rows of a batch agree to rounding only
        assert few.entity == answer.entity
        assert (few.score, few.probability) == pytest.approx((answer.score, answer.probability), abs=1e-5)


# -- time ---------------------------------------------------------------------------------------------------------


def test_a_late_fact_is_applied_as_of_the_watermark_or_refused_by_policy() -> None:
    fact = Fact(NEW[0], RELATIONS[0], KNOWN[0], NOW - 3)
    applies, refuses, on_time = engine_with_past(), engine_with_past(late="refuse"), engine_with_past()
    before = refuses.snapshot()
    assert applies.observe([fact]) == Observed(1, 1, ())
    on_time.observe([structs.replace(fact, t=NOW)])
    assert_same_snapshot(applies.snapshot(), on_time.snapshot())
    refused = refuses.observe([fact, structs.replace(fact, t=NOW)])
    assert (refused.applied, refused.late) == (1, 0)
    assert [one.index for one in refused.refused] == [0]
    assert "late" in refused.refused[0].reason and str(NOW - 3) in refused.refused[0].reason
    unchanged = engine_with_past(late="refuse")
    unchanged.observe([fact])
    assert_same_snapshot(unchanged.snapshot(), before)


def test_a_fact_too_far_ahead_is_refused_and_does_not_move_the_watermark() -> None:
    engine = engine_with_past(max_jump=10)
    before = engine.snapshot()
    far, unknown = Fact(NEW[0], RELATIONS[0], NEW[1], NOW + 11), Fact(NEW[0], "Unheard of", NEW[1], NOW + 1)
    done = engine.observe([far, unknown])
    assert done.applied == 0 and [one.index for one in done.refused] == [0, 1]
    assert "ahead" in done.refused[0].reason and "Unheard of" in done.refused[1].reason
    assert_same_snapshot(engine.snapshot(), before)
    near = structs.replace(far, t=NOW + 10)
    assert engine.observe([far, near, structs.replace(far, t=NOW + 20)]) == Observed(
        2, 0, (Refusal(0, "far-future", f"time {NOW + 11} is more than 10 ticks ahead of {NOW}"),)
    )
    assert engine.watermark == NOW + 20


def test_a_late_query_is_answered_as_of_the_watermark_and_says_so() -> None:
    engine = engine_with_past()
    late, now = engine.predict([Query(RELATIONS[0], t, s=KNOWN[0], k=EVERYTHING) for t in (NOW - 4, NOW)])
    assert isinstance(late, Ranking) and isinstance(now, Ranking)
    assert late.late and late.as_of == NOW
    assert not now.late and now.as_of == NOW
    assert_same_answers([structs.replace(late, late=False)], [now])


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (Query("Unheard of", NOW, s=KNOWN[0]), "Unheard of"),
        (Query(RELATIONS[0], NOW), "exactly one"),
        (Query(RELATIONS[0], NOW, s=KNOWN[0], o=KNOWN[1]), "exactly one"),
        (Query(RELATIONS[0], NOW, s=KNOWN[0], k=-1), "k is -1"),
        (Query(RELATIONS[0], 10**30, s=KNOWN[0]), "out of range"),
    ],
)
def test_a_query_that_cannot_be_answered_is_refused_and_the_others_are_answered(query: Query, says: str) -> None:
    good = Query(RELATIONS[0], NOW, s=KNOWN[0])
    engine = engine_with_past()
    first, bad, second = engine.predict([good, query, good])
    assert isinstance(bad, Refusal) and bad.index == 1 and says in bad.reason
    assert_same_answers([first, second], engine.predict([good]) * 2)


@pytest.mark.parametrize("time", [2**31, -(2**31), 10**30])
def test_a_time_that_the_state_cannot_hold_is_refused(time: int) -> None:
    engine = fresh_engine()
    done = engine.observe([Fact("a", RELATIONS[0], "b", time), Fact("a", RELATIONS[0], "b", 3)])
    assert done.applied == 1 and [one.index for one in done.refused] == [0]
    assert engine.watermark == 3


def test_a_graph_without_any_entity_answers_with_an_empty_list() -> None:
    for name in CONFIGURATIONS.keys() - set(PER_ENTITY):
        answer = fresh_engine(name).predict([Query(RELATIONS[0], 5, s="a", rank_of=("b",))])[0]
        assert isinstance(answer, Ranking)
        assert answer.top == () and answer.cold_start and answer.ranks == {"b": 1.0}


# -- room ---------------------------------------------------------------------------------------------------------


def test_the_state_grows_by_doubling() -> None:
    engine = fresh_engine()
    sizes = set()
    for time in range(120):
        engine.observe([Fact(f"entity {2 * time}", RELATIONS[0], f"entity {2 * time + 1}", time)])
        sizes.add(engine.state.tensors["text"].shape[0])
    assert sizes == {16, 32, 64, 128, 256}
    assert engine.state.entities == 240


@each_configuration
def test_room_to_spare_changes_nothing(name: str) -> None:
    tight, roomy = engine_with_past(name), engine_with_past(name)
    roomy.state.reserve(1_000)
    log: list[Event] = [*[Fact(name, RELATIONS[0], KNOWN[0], NOW + 1) for name in NEW]]
    log += [Query(relation, NOW + 2, s=KNOWN[0], k=EVERYTHING) for relation in RELATIONS]
    assert_same_answers(play(roomy, log), play(tight, log))
    assert_same_snapshot(roomy.snapshot(), tight.snapshot())


@each_configuration
def test_the_state_of_a_graph_whose_names_are_all_known_stays_bounded(name: str) -> None:
    engine = fresh_engine(name)
    sizes = []
    for time in range(60):
        facts = [Fact(KNOWN[i % 8], RELATIONS[(i + time) % 5], KNOWN[(i * time + 1) % 8], time) for i in range(12)]
        engine.observe(facts)
        sizes.append(sum(tensor.numel() for tensor in engine.state.export().values()))
    assert sizes[-1] == sizes[40]


# -- devices ------------------------------------------------------------------------------------------------------


@each_configuration
def test_no_tensor_is_made_on_the_default_device(name: str) -> None:
    log: list[Event] = [*named(GRAPH.facts.tolist()), Query(RELATIONS[0], NOW, s=KNOWN[0], k=EVERYTHING)]
    log += [Query(RELATIONS[0], NOW + 1, o="Nobody", rank_of=(KNOWN[1], "Nobody else"), exclude=(KNOWN[2],))]
    log += [Fact(NEW[0], RELATIONS[1], KNOWN[0], NOW + 1), Tick(NOW + 3), Query(RELATIONS[0], NOW + 4, s=NEW[0])]
    usual = fresh_engine(name)
    answers = play(usual, log)
    try:
        torch.set_default_device("meta")
        engine = fresh_engine(name)
        assert_same_answers(play(engine, log), answers)
        saved = through_a_file(engine.snapshot())
        engine = fresh_engine(name)
        engine.restore(saved)
        again = engine.predict([Query(RELATIONS[0], NOW + 4, s=NEW[0])])
        gates = engine.gates(NOW + 4)
    finally:
        torch.set_default_device(None)
    assert_same_answers(again, answers[-1:])
    assert all(tensor.device.type == "cpu" for tensor in (gates, *engine.state.tensors.values()))
    assert_same_snapshot(engine.snapshot(), usual.snapshot())


def test_a_snapshot_of_other_parameters_is_refused_and_changes_nothing() -> None:
    engine = engine_with_past()
    before = engine.snapshot()
    stranger = Engine(small_model(engine.model.config, seed=7), RELATIONS, engine.encoder, entities=GRAPH.entities)
    with pytest.raises(InputError, match="other parameters"):
        engine.restore(stranger.snapshot())
    assert_same_snapshot(engine.snapshot(), before)


def test_a_tick_out_of_range_is_refused() -> None:
    engine = engine_with_past()
    with pytest.raises(InputError, match="32 bits"):
        engine.advance(2**40)
    assert engine.watermark == NOW


@pytest.mark.parametrize(
    ("name", "last_step"),
    [
        ("model-alone", "adatkg_core.engine.commit._count"),
        ("recall-alone", "adatkg_core.engine.live_commit.live_commit.count_entities"),
        ("default", "adatkg_core.engine.live_commit.live_commit.count_entities"),
    ],
)
def test_a_commit_that_fails_leaves_the_state_as_it_was(
    name: str, last_step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    engine, steady = engine_with_past(name), engine_with_past(name)
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(last_step, fail)
        engine.predict([Query(s=KNOWN[0], r=RELATIONS[0], t=NOW + 1)])
    assert_same_snapshot(engine.snapshot(), steady.snapshot())
    assert_same_answers(
        engine.predict([Query(s=KNOWN[0], r=RELATIONS[0], t=NOW + 1)]),
        steady.predict([Query(s=KNOWN[0], r=RELATIONS[0], t=NOW + 1)]),
    )


def test_an_encoder_of_another_width_is_refused() -> None:
    engine = engine_with_past()
    with pytest.raises(InputError, match="dimensions"):
        Engine(engine.model, RELATIONS, HashEncoder(engine.encoder.dim + 1))


# -- another device ------------------------------------------------------------------------------------------------


@each_configuration
def test_a_state_that_moves_is_bitwise_the_same_and_goes_in_steps(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adatkg_core.state.graph_state.MOVED", 4_096)
    engine = engine_with_past(name)
    engine.observe([Fact(KNOWN[0], RELATIONS[0], NEW[0], NOW + 1)])
    wanted, size = engine.snapshot(), sum(tensor.nbytes for tensor in engine.state.tensors.values())
    before = dict(engine.state.tensors)
    steps = sum(1 for _ in engine.state.move(torch.device("cpu")))
    assert steps >= size / 4_096
    assert all(engine.state.tensors[tensor].data_ptr() != old.data_ptr() for tensor, old in before.items() if len(old))
    assert_same_snapshot(engine.snapshot(), wanted)


def test_an_engine_that_moves_leaves_nothing_behind() -> None:
    engine, elsewhere = Engine(small_model(small_config()), RELATIONS, ENCODER), torch.device("meta")
    for _ in engine.move(elsewhere, ENCODER):
        assert engine.device != elsewhere, "it is not there before the last step"
    assert engine.device == engine.state.device == elsewhere
    assert {tensor.device for tensor in engine.state.tensors.values()} == {elsewhere}
    assert {tensor.device for tensor in engine.model.state_dict().values()} == {elsewhere}

"""Writes the messages of a data set fast: the codec's own bytes with the names filled in."""

from __future__ import annotations

from collections.abc import Collection

import orjson

from adatkg_core.datasets import Dataset
from adatkg_core.errors import InputError
from adatkg_core.messages import MAX_BYTES, MAX_EXCLUDED, encode_fact, encode_query


class Writer:
    """Gives for rows of one data set what `encode_fact` and `encode_query` give for their names, byte by byte."""

    def __init__(self, dataset: Dataset, k: int) -> None:
        self._entity = [orjson.dumps(name) for name in dataset.entities]
        self._relation = [orjson.dumps(name) for name in dataset.relations]
        self._id = orjson.dumps(dataset.name)[:-1]  # open at its end, where row and side follow
        # One call of the codec for each form of message: what a message looks like is known there alone.
        self._fact = _form(encode_fact("S", "R", "O", "T"))
        self._ask_object = _form(encode_query("I", "R", "T", s="S", k=k, rank_of=["A"]))
        self._ask_subject = _form(encode_query("I", "R", "T", o="O", k=k, rank_of=["A"]))
        self._ask_object_among = _form(encode_query("I", "R", "T", s="S", k=k, rank_of=["A"], exclude=["X"]))
        self._ask_subject_among = _form(encode_query("I", "R", "T", o="O", k=k, rank_of=["A"], exclude=["X"]))

    def fact(self, s: int, r: int, o: int, t: int) -> bytes:
        """The fact itself."""
        entity = self._entity
        return self._fact % (entity[s], self._relation[r], entity[o], t)

    def ask_object(self, row: int, s: int, r: int, o: int, t: int, others: Collection[int] = ()) -> bytes:
        """(s, r, ?, t) with the rank of o, the `others` left out; `row` is the fact's place in the data set."""
        entity, id_ = self._entity, b'%b-%d-o"' % (self._id, row)
        if not others:
            return self._ask_object % (id_, entity[s], self._relation[r], t, entity[o])
        among = self._among(id_, others)
        return _checked(id_, self._ask_object_among % (id_, entity[s], self._relation[r], t, entity[o], among))

    def ask_subject(self, row: int, s: int, r: int, o: int, t: int, others: Collection[int] = ()) -> bytes:
        """(?, r, o, t) with the rank of s, the `others` left out; `row` is the fact's place in the data set."""
        entity, id_ = self._entity, b'%b-%d-s"' % (self._id, row)
        if not others:
            return self._ask_subject % (id_, self._relation[r], entity[o], t, entity[s])
        among = self._among(id_, others)
        return _checked(id_, self._ask_subject_among % (id_, self._relation[r], entity[o], t, entity[s], among))

    def _among(self, id_: bytes, others: Collection[int]) -> bytes:
        if len(others) > MAX_EXCLUDED:
            raise _too_large(id_, f"{len(others)} other answers at its time, at most {MAX_EXCLUDED}")
        return b",".join([self._entity[other] for other in others])


def _checked(id_: bytes, message: bytes) -> bytes:
    if len(message) > MAX_BYTES:
        raise _too_large(id_, f"{len(message)} bytes with the other answers at its time, at most {MAX_BYTES}")
    return message


def _too_large(id_: bytes, problem: str) -> InputError:
    return InputError(f"query {id_.decode()} has {problem}; ask at other times, see --queries-from and --to")


def _form(message: bytes) -> bytes:
    """The message with a hole in place of each capital letter; no field is called by one, and times are numbers."""
    form = message.replace(b"%", b"%%").replace(b'"T"', b"%d")
    for letter in (b'"I"', b'"S"', b'"R"', b'"O"', b'"A"', b'"X"'):
        form = form.replace(letter, b"%b")
    return form

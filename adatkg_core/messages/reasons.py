"""Why an event cannot be processed: every reason with what it means, what helps, and whether a retry can."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Reason(StrEnum):
    """The word that a dead letter carries and that is counted.

    `may_pass` says that the same bytes may be taken another time, with another model or after a change of settings.
    """

    meaning: str
    remedy: str
    may_pass: bool

    BAD_NAME = ("bad-name", "A name is empty, too long or holds control characters.", "Mend it with `--set`.")
    BAD_TIME = (
        "bad-time",
        "A time is neither a tick nor an ISO time, does not fit into 32 bits, or is an ISO time for a graph without a "
        "calendar.",
        "Mend it with `--set t=…`; for a graph without a calendar send ticks.",
    )
    BAD_VALUE = (
        "bad-value",
        "A number or a list is out of its limits, or a query gives both ends or none.",
        "Mend it.",
    )
    FAR_FUTURE = (
        "far-future",
        "A fact or tick is further ahead of the watermark than `max_jump` ticks. Taking it would make all that follows "
        "late.",
        "Mend a wrong date. After a real pause that long send ticks in between, or raise `max_jump`; then retry.",
        True,
    )
    LATE = (
        "late",
        "A fact is older than the watermark, and the setting `late` is `refuse`.",
        "Retry does not help unless the setting is `apply`.",
        True,
    )
    MISSING_FIELD = ("missing-field", "A field is missing that the message needs.", "Mend it with `--set`.")
    NO_GRAPH = (
        "no-graph",
        "The message has no key, or the key cannot be a graph's name.",
        "Send it anew under the right key.",
    )
    NO_MODEL = (
        "no-model",
        "A query for a graph that has no model. Facts of such a graph wait in the log.",
        "Train one with `adatkg train --models … --graph …`, then ask again or retry.",
        True,
    )
    NOT_JSON = ("not-json", "The value is empty or is no JSON.", "Put back a whole value with `--value`.")
    NOT_UTF8 = ("not-utf8", "The value is not UTF-8.", "Put back a whole value with `--value-file`.")
    TOO_LARGE = ("too-large", "The value has more than 1 MiB.", "An event that large is a mistake of the producer.")
    TOO_MANY_ENTITIES = (
        "too-many-entities",
        "A fact names an entity that is new, and the graph has as many as its bundle's `model.max_entities` allows.",
        "Mend a misspelt name. For more entities train a bundle with a larger `model.max_entities`; it finds the fact "
        "where it stands in the log.",
        True,
    )
    TOO_MUCH = (
        "too-much",
        "A query asks for more answers (`k`) or more ranks (`rank_of`) than the worker's settings `max_k` and "
        "`max_ranked` allow.",
        "Ask for less, or raise the setting and retry.",
        True,
    )
    UNDELIVERABLE = (
        "undeliverable",
        "A prediction or a dead letter is larger than its topic takes. This one has no value, and names its event's "
        "place in the log.",
        "Raise the topic's `max.message.bytes`, or ask for fewer answers.",
    )
    UNKNOWN_KIND = ("unknown-kind", "`kind` is none of fact, query, tick, model.", "Mend it with `--set kind=…`.")
    UNFIT_MODEL = (
        "unfit-model",
        "A model event names a bundle that must not answer here: it was made for another graph, has numbers that are "
        "not finite, or lacks a relation that the version before it knows. That version goes on.",
        "Promote another one with `adatkg models promote`.",
    )
    UNKNOWN_MODEL = (
        "unknown-model",
        "A model event names a version that the model store does not have. The version before it goes on.",
        "Put the bundle into the store, then promote it with `adatkg models promote`.",
        True,
    )
    UNKNOWN_RELATION = (
        "unknown-relation",
        "The model does not know the relation.",
        "Mend a misspelt one with `--set r=…`. A new one is learned by the next training from the log, which finds the "
        "fact where it stands; retrying it is not needed.",
        True,
    )
    UNKNOWN_VERSION = (
        "unknown-version",
        "`v` is not the version of messages that the worker reads.",
        "Upgrade the worker or the producer.",
    )
    WRONG_PARTITION = (
        "wrong-partition",
        "The event stands in another partition than its graph's, and the worker that found it may not write to the "
        "events' topic, so it could not move it.",
        "Grant the worker the right to write to the events' topic, then retry: a retried event is placed rightly.",
        True,
    )
    WRONG_TYPE = ("wrong-type", "A field or the whole message is of another type than it must be.", "Mend it.")

    def __new__(cls, word: str, meaning: str, remedy: str, may_pass: bool = False) -> Self:
        """A member is its word."""
        self = str.__new__(cls, word)
        self._value_, self.meaning, self.remedy, self.may_pass = word, meaning, remedy, may_pass
        return self


class Unusable(Exception):
    """A message that cannot be processed: a reason that can be counted and a sentence that can be acted on."""

    def __init__(self, code: Reason, detail: str) -> None:
        super().__init__(detail)
        self.code, self.detail = code, detail

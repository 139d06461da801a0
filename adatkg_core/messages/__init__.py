"""What goes over the wire: declared, decoded, checked and encoded here and nowhere else."""

from adatkg_core.messages.announcement import (
    Announcement,
    Verdict,
    decode_announcement,
    encode_announcement,
    verdict_from,
)
from adatkg_core.messages.events import (
    EVENTS,
    MAX_BYTES,
    MAX_EXCLUDED,
    MAX_K,
    MAX_RANKED,
    NEXT,
    Question,
    check_event,
    decode_event,
    decode_graph,
    encode_fact,
    encode_model,
    encode_query,
    encode_tick,
)
from adatkg_core.messages.fields import MAX_NAME, VERSION, require_graph, require_name
from adatkg_core.messages.json_schema import message_schemas
from adatkg_core.messages.prediction import Prediction, decode_prediction, encode_prediction
from adatkg_core.messages.reasons import Reason, Unusable

__all__ = [
    "EVENTS",
    "MAX_BYTES",
    "MAX_EXCLUDED",
    "MAX_K",
    "MAX_NAME",
    "MAX_RANKED",
    "NEXT",
    "VERSION",
    "Announcement",
    "Prediction",
    "Question",
    "Reason",
    "Unusable",
    "Verdict",
    "check_event",
    "decode_announcement",
    "decode_event",
    "decode_graph",
    "decode_prediction",
    "encode_announcement",
    "encode_fact",
    "encode_model",
    "encode_prediction",
    "encode_query",
    "encode_tick",
    "message_schemas",
    "require_graph",
    "require_name",
    "verdict_from",
]

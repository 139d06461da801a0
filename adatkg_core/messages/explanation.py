"""What is wrong with a message that its declaration refuses, in our words. Only for messages that have failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from msgspec import Struct, inspect

from adatkg_core.constants import LAST_TIME
from adatkg_core.messages.fields import VERSION, require_name, shown
from adatkg_core.messages.reasons import Reason, Unusable

_TYPES: dict[type, tuple[str, tuple[type, ...]]] = {
    inspect.StrType: ("string", (str,)),
    inspect.LiteralType: ("string", (str,)),
    inspect.IntType: ("integer", (int,)),
    inspect.FloatType: ("number", (int, float)),
    inspect.BoolType: ("boolean", (bool,)),
    inspect.NoneType: ("null", (type(None),)),
    inspect.VarTupleType: ("array", (list,)),
    inspect.DictType: ("object", (dict,)),
    inspect.TypedDictType: ("object", (dict,)),
    inspect.DataclassType: ("object", (dict,)),
    inspect.StructType: ("object", (dict,)),
}


def parse_object(data: bytes) -> dict[str, Any]:
    """The JSON object that these bytes are, whatever is in it. Raises Unusable."""
    try:
        values = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        try:
            data.decode()
        except UnicodeDecodeError:
            raise Unusable(Reason.NOT_UTF8, "the message is not UTF-8: send JSON in UTF-8") from error
        raise Unusable(Reason.NOT_JSON, f"the message is not JSON ({error}): send a JSON object") from error
    if type(values) is not dict:
        raise Unusable(Reason.WRONG_TYPE, f"the message is {shown(values)}: it must be a JSON object")
    return values


def require_version(values: dict[str, Any]) -> None:
    """Raises Unusable for another version of the messages than this one."""
    version = values.get("v")
    if version != VERSION or type(version) is not int:
        raise Unusable(Reason.UNKNOWN_VERSION, f"v is {shown(version)}: this program reads version {VERSION}")


# -- events ---------------------------------------------------------------------------------------------------


def explain_event(values: dict[str, Any], kinds: Mapping[str, type[Struct]]) -> dict[str, Any]:
    """The fields that an event gives and its kind declares. Raises Unusable for the first that is wrong."""
    if "v" not in values:
        raise Unusable(Reason.MISSING_FIELD, f"v is missing: this is version {VERSION} of the messages")
    require_version(values)
    kind = values.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        code = Reason.MISSING_FIELD if "kind" not in values else Reason.UNKNOWN_KIND
        raise Unusable(code, f"kind is {shown(kind)}: it must be {', '.join(kinds)}")
    fields = {field.name: field for field in _fields(kinds[kind]) if field.name != "v"}
    for key, field in fields.items():
        if values.get(key) is not None:
            _require(key, values[key], field.type)
        elif field.required:
            needed = ", ".join(name for name, one in fields.items() if one.required)
            raise Unusable(Reason.MISSING_FIELD, f"{key} is missing: a {kind} has {needed}")
    return {key: values[key] for key in ("v", *fields) if values.get(key) is not None}


def _require(key: str, value: Any, wanted: inspect.Type) -> None:
    """Raises Unusable for a value that is not what an event's field is declared to be."""
    kinds = [kind for kind in _alternatives(wanted) if not isinstance(kind, inspect.NoneType)]
    if len(kinds) > 1:
        _require_time(key, value)
        return
    match kinds[0]:
        case inspect.ListType(max_length=most):
            if type(value) is not list:
                raise Unusable(Reason.WRONG_TYPE, f"{key} is {shown(value)}: it must be a list of names")
            if most is not None and len(value) > most:
                raise Unusable(Reason.BAD_VALUE, f"{key} has {len(value)} names: at most {most}")
            for item in value:
                require_name(key, item)
        case inspect.IntType(ge=int(least), le=int(most)):
            if type(value) is not int:
                raise Unusable(Reason.WRONG_TYPE, f"{key} is {shown(value)}: it must be a whole number")
            if not least <= value <= most:
                raise Unusable(Reason.BAD_VALUE, f"{key} is {value}: it must be from {least} to {most}")
        case _:
            require_name(key, value)


def _require_time(key: str, value: Any) -> None:
    if type(value) is int:
        if abs(value) > LAST_TIME:
            raise Unusable(Reason.BAD_TIME, f"{key} is {value}: a tick has 32 bits")
    elif type(value) is not str:
        raise Unusable(Reason.WRONG_TYPE, f"{key} is {shown(value)}: it must be a whole tick or an ISO time")


# -- other messages -------------------------------------------------------------------------------------------


def explain(values: dict[str, Any], declared: type, what: str) -> Unusable:
    """Why an object is not the message that is declared."""
    for field in _fields(declared):
        if field.required and field.encode_name not in values:
            return Unusable(Reason.MISSING_FIELD, f"{field.encode_name} is missing: this is no {what}")
    problem = _first(
        _mismatch(values[field.encode_name], field.type, field.encode_name)
        for field in _fields(declared)
        if field.encode_name in values
    )
    return Unusable(Reason.WRONG_TYPE, f"{problem or 'it is not as declared'}: this is no {what}")


def explain_part(value: Any, declared: type, name: str, what: str) -> Unusable:
    """Why a part of a message is not as it is declared."""
    return Unusable(Reason.WRONG_TYPE, f"{_mismatch(value, inspect.type_info(declared), name)}: this is no {what}")


def _mismatch(value: Any, wanted: inspect.Type, name: str) -> str | None:
    """What is wrong with a value, in a sentence that begins with its name; None when nothing is."""
    kinds = _alternatives(wanted)
    if any(isinstance(kind, inspect.AnyType) for kind in kinds):
        return None
    # type() and not isinstance(): JSON's true is not a number.
    kind = next((kind for kind in kinds if type(value) in _TYPES[type(kind)][1]), None)
    match kind:
        case None:
            return f"{name} is not of type {' or '.join(_TYPES[type(one)][0] for one in kinds)}"
        case inspect.LiteralType(values=allowed) if value not in allowed:
            return f"{name} is {value!r}: not one of {', '.join(map(repr, allowed))}"
        case inspect.IntType(ge=int(least), le=int(most)) if not least <= value <= most:
            return f"{name} is {value}: out of range"
        case inspect.VarTupleType(item_type=item):
            return _first(_mismatch(one, item, f"{name}[{i}]") for i, one in enumerate(value))
        case inspect.DictType(value_type=item):
            return _first(_mismatch(one, item, f"{name}.{key}") for key, one in value.items())
        case (
            inspect.TypedDictType(fields=fields)
            | inspect.DataclassType(fields=fields)
            | inspect.StructType(fields=fields)
        ):
            lacking = (f"{name} lacks {field.name}" for field in fields if field.required and field.name not in value)
            return next(lacking, None) or _first(
                _mismatch(value[field.name], field.type, f"{name}.{field.name}")
                for field in fields
                if field.name in value
            )
    return None


def _fields(declared: type) -> tuple[inspect.Field, ...]:
    info = inspect.type_info(declared)
    assert isinstance(info, inspect.StructType)
    return info.fields


def _alternatives(wanted: inspect.Type) -> list[inspect.Type]:
    """The types of which a value may be one, without what descriptions wrap around them."""
    while isinstance(wanted, inspect.Metadata):
        wanted = wanted.type
    if isinstance(wanted, inspect.UnionType):
        return [kind for one in wanted.types for kind in _alternatives(one)]
    return [wanted]


def _first(found: Iterator[str | None]) -> str | None:
    return next((problem for problem in found if problem), None)

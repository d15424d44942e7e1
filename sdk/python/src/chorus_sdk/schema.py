"""JSON Schemas of dataclasses, TypedDicts and pydantic models, and objects of them from the input of a job."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from .core import as_object
from .errors import InvalidInput

_SIMPLE: dict[object, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
}


def describe_schema(shape: type | Mapping[str, object]) -> dict[str, Any]:
    """The JSON Schema of a class; a schema, or the short form `{"text": "string"}`, is passed on as it is."""
    if isinstance(shape, Mapping):
        return dict(shape)
    pydantic_schema = getattr(shape, "model_json_schema", None)
    if callable(pydantic_schema):
        return cast(dict[str, Any], pydantic_schema())
    return _describe_type(shape)


def _describe_type(kind: Any) -> dict[str, Any]:
    if kind in _SIMPLE:
        return dict(_SIMPLE[kind])
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Required, NotRequired):
        return _describe_type(arguments[0])
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_describe_type(one) for one in arguments]}
    if origin is list or kind is list:
        return {"type": "array", "items": _describe_type(arguments[0])} if arguments else {"type": "array"}
    if origin is dict or kind is dict:
        return {"type": "object"}
    if dataclasses.is_dataclass(kind):
        required = [
            field.name
            for field in dataclasses.fields(kind)
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        ]
        return _describe_object(cast(type, kind), required)
    if is_typeddict(kind):
        return _describe_object(kind, sorted(kind.__required_keys__))
    raise InvalidInput(f"there is no schema for {kind!r}: use a dataclass, a TypedDict, a pydantic model or a schema")


def _describe_object(kind: type, required: list[str]) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=False)
    properties = {name: _describe_type(hint) for name, hint in hints.items()}
    return {"type": "object", "properties": properties, "required": required}


def build_input(shape: type | None, data: object) -> object:
    """The input as the class that the skill names. The hub has checked it against the schema."""
    fields = as_object(data)
    if shape is None or fields is None:
        return data
    validate = getattr(shape, "model_validate", None)
    if callable(validate):
        return validate(fields)
    if dataclasses.is_dataclass(shape):
        hints = get_type_hints(shape)
        known = {name: build_input(_class_of(hints[name]), value) for name, value in fields.items() if name in hints}
        return shape(**known)
    return data


def _class_of(hint: object) -> type | None:
    return hint if isinstance(hint, type) and dataclasses.is_dataclass(hint) else None


def print_output(output: object) -> object:
    """The output of a skill as JSON."""
    dump = getattr(output, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    if dataclasses.is_dataclass(output) and not isinstance(output, type):
        return dataclasses.asdict(output)
    return output

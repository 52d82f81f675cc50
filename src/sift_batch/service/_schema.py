"""Which JSON does a type stand for? JSON Schema, made from the types of the views and the bodies.

Every named form becomes a component, once, and is closed: what a `Note` says is added. It knows the few
kinds of types that are used, and refuses all others. Next: `_openapi`, which puts paths and forms together.
"""

import types
from collections.abc import Mapping
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)
from typing import is_typeddict as is_form

from sift_batch import Options

from ._schema_notes import Note
from ._schema_orders import (
    OPTION_NOTES,
    AnyOptions,
    TargetOptions,
    WholeOptions,
    context_rule,
    option_names,
    option_rules,
    rules_text,
)

Schema = dict[str, Any]

_PLAIN: Final[Mapping[object, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
_WORDS: Final = {
    "format": "format",
    "pattern": "pattern",
    "minimum": "minimum",
    "maximum": "maximum",
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_items": "minItems",
    "max_items": "maxItems",
}


class Schemas:
    """Makes schemas, and gathers those that have a name in `components`."""

    def __init__(self) -> None:
        self.components: dict[str, Schema] = {}

    def of(self, kind: Any) -> Schema:
        """Return the schema of a type; of a named form, a reference to it."""
        origin = get_origin(kind)
        if origin is Annotated:
            inner, *notes = get_args(kind)
            return self._noted(self.of(inner), notes)
        if origin is NotRequired:
            return self.of(get_args(kind)[0])
        if origin in (Union, types.UnionType):
            return self._union([self.of(member) for member in get_args(kind)])
        if origin is Literal:
            return {"enum": list(get_args(kind))}
        if origin is list:
            return {"type": "array", "items": self.of(get_args(kind)[0])}
        if kind in _PLAIN:
            return {"type": _PLAIN[kind]}
        if is_form(origin or kind):
            return self._named(kind)
        if origin is Mapping:
            return {"type": "object"}
        raise TypeError("no schema is known for this type")

    def _noted(self, schema: Schema, notes: list[Note]) -> Schema:
        for note in notes:
            if note.form is not None:
                schema = self.of(note.form)
            said = {word: getattr(note, name) for name, word in _WORDS.items()}
            said["enum"] = None if note.values is None else list(note.values)
            said["description"] = note.text or None
            if note.holds is not None:
                said |= {"contentMediaType": "application/json", "contentSchema": self.of(note.holds)}
            schema = {**schema, **{word: value for word, value in said.items() if value is not None}}
        return schema

    def _union(self, members: list[Schema]) -> Schema:
        one, *others = members
        # Words such as `pattern` say nothing about null: the two can be one schema.
        if others == [{"type": "null"}] and "type" in one and "enum" not in one:
            return {**one, "type": [one["type"], "null"]}
        return {"anyOf": members}

    def _named(self, kind: Any) -> Schema:
        arguments = get_args(kind)
        name = "".join(part.__name__.removesuffix("View") for part in (*arguments, get_origin(kind) or kind))
        if name not in self.components:
            self.components[name] = {}  # a form that holds itself finds its name taken
            self.components[name] = self._options(kind) or self._form(get_origin(kind) or kind, arguments)
        return {"$ref": f"#/components/schemas/{name}"}

    def _form(self, form: Any, arguments: tuple[Any, ...]) -> Schema:
        stands_for = dict(zip(getattr(form, "__parameters__", ()), arguments, strict=True))
        hints = get_type_hints(form, include_extras=True)
        return {
            "type": "object",
            "description": " ".join((form.__doc__ or "").split()),
            "properties": {name: self.of(_filled(hint, stands_for)) for name, hint in hints.items()},
            "required": [name for name in hints if name in form.__required_keys__],
            # What is told about a page may grow; all other forms are exactly what they are.
            "additionalProperties": not form.__total__,
        }

    def _options(self, kind: Any) -> Schema | None:
        """The forms of options are made from the dataclass of the engine."""
        if kind is AnyOptions:
            hints = get_type_hints(Options)
            notes = {name: OPTION_NOTES[name] for name in option_names()}
            return {
                "type": "object",
                "description": "How a page is fetched, and what of it is wanted. All may be left out.",
                "properties": {
                    name: self._noted(self.of(hints[name]), [note]) for name, note in notes.items()
                },
                "additionalProperties": False,
            }
        if kind is TargetOptions:
            return {"allOf": [self.of(AnyOptions), *option_rules()], "description": rules_text()}
        if kind is WholeOptions:
            about = "And `context` needs `grep` or `question`."
            return {"allOf": [self.of(TargetOptions), context_rule()], "description": about}
        return None


def _filled(hint: Any, stands_for: Mapping[Any, Any]) -> Any:
    """Return a hint of a generic form with its variable filled in."""
    if isinstance(hint, TypeVar):
        return stands_for[hint]
    if get_origin(hint) is list:
        return list[_filled(get_args(hint)[0], stands_for)]  # type: ignore[misc]  # made at run time
    return hint

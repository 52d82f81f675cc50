"""How does a person read a schema? In words and tables: what a value may be, and which members it has.

Plain functions from JSON Schema, as `_schema` makes it, to HTML. The page round it is `_openapi_page`'s.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, Final

Json = Mapping[str, Any]

_CODE: Final = re.compile(r"`([^`]+)`")
_BOUNDS: Final = (
    ("minimum", "at least {:,}"),
    ("maximum", "at most {:,}"),
    ("minLength", "at least {:,} characters"),
    ("maxLength", "at most {:,} characters"),
    ("minItems", "at least {:,}"),
    ("maxItems", "at most {:,}"),
)
_FROM: Final = 10**15  # a bound beyond it is of no use to anybody


def text_html(text: str) -> str:
    """Return a text with what stands in backticks as code."""
    return _CODE.sub(r"<code>\1</code>", escape(text, quote=False))


def table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; the cells are HTML."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>\n" for row in rows)
    return (
        f'<div class="scroll"><table><caption>{escape(caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>\n"
    )


def kind_html(schema: Json) -> str:
    """Return what a value may be, in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f'<a href="#form-{name}">{escape(name)}</a>'
    if "anyOf" in schema:
        return " or ".join(kind_html(member) for member in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"<code>{escape(_literal(value))}</code>" for value in schema["enum"])
    if schema.get("type") == "array":
        return "list of " + kind_html(schema["items"]) + _bounds(schema)
    if "allOf" in schema:
        return kind_html(schema["allOf"][0])
    types = schema.get("type", "anything")
    names = types if isinstance(types, list) else [types]
    return " or ".join(escape(name) for name in names) + _bounds(schema)


def form_html(name: str, schema: Json) -> str:
    """Return a named form: what it is, and its members."""
    head = f'<section class="card" id="form-{name}"><h3>{escape(name)}</h3>\n'
    about = f"<p>{text_html(schema.get('description', ''))}</p>\n" if schema.get("description") else ""
    if "allOf" in schema:
        return f"{head}{about}<p>As {kind_html(schema['allOf'][0])}.</p></section>"
    required = set(schema.get("required", []))
    rows = [
        [
            f"<code>{escape(member)}</code>"
            + ("" if member in required else ' <span class="soft">optional</span>'),
            kind_html(item),
            text_html(item.get("description", "")),
        ]
        for member, item in schema.get("properties", {}).items()
    ]
    members = table("Members", ["Name", "What it may be", "What it is"], rows) if rows else ""
    return f"{head}{about}{members}</section>"


def forms_html(schemas: Mapping[str, Json], each: Callable[[str, Json], str]) -> str:
    """Return all named forms."""
    return "\n".join(each(name, schema) for name, schema in schemas.items())


def _bounds(schema: Json) -> str:
    parts = [
        text.format(schema[word]) for word, text in _BOUNDS if word in schema and abs(schema[word]) < _FROM
    ]
    if "default" in schema:
        parts.append(f"else {schema['default']}")
    return f' <span class="soft">({", ".join(parts)})</span>' if parts else ""


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()

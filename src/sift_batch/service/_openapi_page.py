"""How does a person read the description? As one page of plain HTML, made from the same document.

It needs no script and loads its own style alone. What stands in it comes from the document, and the table of
codes from the registry; every text is escaped.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, Final

from ._codes import KINDS
from ._openapi_forms import form_html, forms_html, kind_html, table, text_html
from ._openapi_parts import KEY_CODES, SERVER_CODES

Json = Mapping[str, Any]

_SERVER: Final = "http://127.0.0.1:8080"
_LINES: Final = "application/jsonl"
_ANYWHERE: Final = SERVER_CODES | KEY_CODES - {"bad_request"}


def page_of(document: Json) -> str:
    """Return the page."""
    template = files(__package__).joinpath("web", "docs.html").read_text(encoding="utf-8")
    sections = [_tag(document, tag) for tag in document["tags"]]
    return Template(template).substitute(
        version=escape(document["info"]["version"]),
        contents=_contents(document),
        about=_paragraphs(document["info"]["description"]) + _anywhere(),
        body="\n".join([*sections, _forms(document), _codes()]),
    )


def _operations(document: Json, tag: str) -> Iterable[tuple[str, str, Json]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if tag in operation["tags"]:
                yield path, method, operation


def _contents(document: Json) -> str:
    parts = []
    for tag in document["tags"]:
        name = tag["name"]
        rows = [
            f'<li><a href="#{operation["operationId"]}">{_method(method)} {escape(path)}</a></li>'
            for path, method, operation in _operations(document, name)
        ]
        parts.append(f"<h2>{escape(name.capitalize())}</h2>\n<ul>{''.join(rows)}</ul>")
    more = [("forms", "Forms"), ("codes", "Codes")]
    rows = [f'<li><a href="#{name}">{text}</a></li>' for name, text in more]
    parts.append(f"<h2>Reference</h2>\n<ul>{''.join(rows)}</ul>")
    return "\n".join(parts)


def _tag(document: Json, tag: Json) -> str:
    name = tag["name"]
    cards = [_operation(document, *found) for found in _operations(document, name)]
    head = f'<h2 id="{name}">{escape(name.capitalize())}</h2>\n<p>{text_html(tag["description"])}.</p>'
    return "\n".join([head, *cards])


def _operation(document: Json, path: str, method: str, operation: Json) -> str:
    name = operation["operationId"]
    parts = [
        f'<section class="card" id="{name}" aria-labelledby="{name}-title">',
        f'<h3 id="{name}-title">{escape(operation["summary"])}</h3>',
        f'<p class="path"><code>{_method(method)} {escape(path)}</code></p>',
        _paragraphs(operation.get("description", "")),
        _parameters(operation.get("parameters", [])),
        _body(operation),
        f"<h4>Example</h4>\n<pre><code>{escape(_curl(path, method, operation))}</code></pre>",
        _answers(document, operation),
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def _method(method: str) -> str:
    return f'<span class="method {method}">{method.upper()}</span>'


def _paragraphs(text: str) -> str:
    return "\n".join(f"<p>{text_html(part)}</p>" for part in text.split("\n\n") if part)


def _parameters(parameters: Sequence[Json]) -> str:
    rows = [
        [
            f"<code>{escape(item['name'])}</code>",
            escape(item["in"]),
            kind_html(item["schema"]),
            text_html(item["description"]),
        ]
        for item in parameters
    ]
    return table("Parameters", ["Name", "In", "What it may be", "What it does"], rows) if rows else ""


def _body(operation: Json) -> str:
    if "requestBody" not in operation:
        return ""
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    return f"<h4>Body</h4>\n<p><code>application/json</code>: {kind_html(schema)}</p>"


def _curl(path: str, method: str, operation: Json) -> str:
    """Return a command that does it, with the document's own example for a body."""
    words = ["curl"]
    if operation.get("security") != []:
        words.append('-H "Authorization: Bearer $SIFT_BATCH_KEY"')
    if method != "get" and "requestBody" not in operation:
        words.append(f"-X {method.upper()}")
    if "requestBody" in operation:
        examples = operation["requestBody"]["content"]["application/json"]["examples"]
        value = list(examples.values())[-1]["value"]
        words += ["-H 'Content-Type: application/json'", "-d " + _quoted(json.dumps(value, indent=2))]
    contents = operation["responses"].get("200", {}).get("content", {})
    if _LINES in contents:
        words.append(f"-H 'Accept: {_LINES}'")
    if "text/event-stream" in contents:
        words.append("-N")
    example = path.replace("{id}", "$ID").replace("{idx}", "0")
    query = {"getBatch": "?wait=25", "getTarget": "?max_chars=8000", "listResults": "?follow=1"}
    words.append(f'"{_SERVER}{example}{query.get(operation["operationId"], "")}"')
    return " ".join(words) if len(words) < 3 else " \\\n  ".join([" ".join(words[:2]), *words[2:]])


def _quoted(text: str) -> str:
    """Return a text as one word for a shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def _answers(document: Json, operation: Json) -> str:
    rows: list[list[str]] = []
    examples: list[str] = []
    for status, found in operation["responses"].items():
        response = _found(document, found)
        content = response.get("content", {})
        codes = [code for code in _problem_codes(content) if code not in _ANYWHERE]
        if "$ref" in found and not codes:
            continue
        what = _code_links(codes) if "$ref" in found else text_html(response["description"])
        headers = [name for name in response.get("headers", {}) if name not in _everywhere(document)]
        rows.append([f"<code>{status}</code>", what, _media(content), _names(headers)])
        examples += _examples(status, content)
    return table("Answers", ["Status", "What", "As", "Headers"], rows) + "".join(examples)


def _code_links(codes: Iterable[str]) -> str:
    return ", ".join(f'<a href="#code-{code}"><code>{code}</code></a>' for code in codes)


def _anywhere() -> str:
    return f"<p>Any request can also end with one of these: {_code_links(sorted(_ANYWHERE))}.</p>"


def _problem_codes(content: Json) -> list[str]:
    problem = content.get("application/problem+json")
    return [] if problem is None else list(problem["examples"])


def _media(content: Json) -> str:
    parts = [
        f'<code class="media">{escape(media)}</code>: {kind_html(item["schema"])}'
        for media, item in content.items()
        if media != "application/problem+json"
    ]
    return "<br>".join(parts)


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"<code>{escape(name)}</code>" for name in names)


def _examples(status: str, content: Json) -> Iterable[str]:
    for media, item in content.items():
        if "example" in item and media != "application/x-ndjson":
            example = item["example"]
            text = example if isinstance(example, str) else json.dumps(example, indent=2, ensure_ascii=False)
            yield (
                f"<details><summary>An answer: {status}, {escape(media)}</summary>"
                f"<pre><code>{escape(text.rstrip())}</code></pre></details>\n"
            )


def _found(document: Json, item: Json) -> Json:
    """Return what a reference names."""
    if "$ref" not in item:
        return item
    found: Any = document
    for part in item["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    return dict(found)


def _everywhere(document: Json) -> set[str]:
    """Return the headers that each answer has: they are told of once."""
    headers = document["components"]["headers"]
    return {name for name, header in headers.items() if header.get("required")}


def _forms(document: Json) -> str:
    about = "<p>All members are there unless they are called optional; there are no others.</p>"
    return f'<h2 id="forms">Forms</h2>\n{about}\n{forms_html(document["components"]["schemas"], form_html)}'


def _codes() -> str:
    rows = []
    for code, kind in KINDS.items():
        again = "yes" if kind.retryable else "no"
        hints = [text_html(hint) for hint in (kind.http, kind.cli, kind.mcp)]
        rows.append([code, f"<code>{kind.status}</code>", escape(kind.title), again, *hints])
    cells = "\n".join(
        f'<tr id="code-{code}"><th scope="row"><code>{code}</code></th>'
        + "".join(f"<td>{cell}</td>" for cell in rest)
        + "</tr>"
        for code, *rest in rows
    )
    heads = ["Code", "Status", "What", "Try again", "What to do: HTTP", "Command line", "MCP"]
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    about = (
        "<p>Each problem has one of these codes; the answer, the command line and the MCP tools say in their "
        "own words what to do about it. The same codes stand at a target that failed.</p>"
    )
    return (
        f'<h2 id="codes">Codes</h2>\n{about}\n<div class="card scroll" tabindex="0" role="region" '
        f'aria-label="All codes"><table class="wide"><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{cells}</tbody></table></div>"
    )

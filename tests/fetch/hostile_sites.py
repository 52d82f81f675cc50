"""Switches: statuses, redirects, Retry-After, cookies and labels of content. See `hostile`."""

import time
from email.utils import formatdate

from hostile_talk import Switch, Talk, answer, says

_PAGE = b"<html><head><title>Page</title></head><body><p>A page that says hello.</p></body></html>"


def _status(code: int, fetch: str, *headers: str) -> Switch:
    return Switch(says(answer(b"no", *headers, status=f"{code} Status")), fetch=fetch, kind="status")


def _to(location: str | bytes, fetch: str, status: int = 302) -> Switch:
    """Redirect; `{me}` in a text stands for host and port of the server."""

    async def act(talk: Talk) -> None:
        where = location
        if isinstance(where, str):
            where = where.replace("{me}", talk.authority).encode()
        head = answer(status=f"{status} Moved").removesuffix(b"\r\n")
        await talk.send(head + b"Location: " + where + b"\r\n\r\n")

    return Switch(act, fetch=fetch, kind="redirect")


async def _long_chain(talk: Talk) -> None:
    at = int(talk.query.removeprefix("n=") or "0")
    await talk.send(answer(b"", f"Location: /to_chain?n={at + 1}", status="302 Found"))


async def _growing(talk: Talk) -> None:
    await talk.send(answer(b"", f"Location: ?{talk.query}&q=1", status="302 Found"))


async def _countdown(talk: Talk) -> None:
    """As many redirects as the query says, then a page."""
    left = int(talk.query.removeprefix("n=") or "0")
    if left:
        await talk.send(answer(b"", f"Location: /to_countdown?n={left - 1}", status="302 Found"))
    else:
        await talk.send(answer(_PAGE, "Content-Type: text/html"))


async def _slow_chain(talk: Talk) -> None:
    await talk.drip([b"HTTP/1.1 302 Found\r\n", b"X: y\r\n"])
    at = int(talk.query.removeprefix("n=") or "0")
    await talk.send(f"Location: /to_slow_chain?n={at + 1}\r\nContent-Length: 0\r\n\r\n".encode())


async def _cookie_redirect(talk: Talk) -> None:
    await talk.send(answer(b"", "Set-Cookie: id=secret; Path=/", "Location: /ok", status="302 Found"))


def _busy(status: int, *values: str, fetch: str = "busy") -> Switch:
    headers = [f"Retry-After: {value}" for value in values]
    return Switch(says(answer(b"later", *headers, status=f"{status} Later")), fetch=fetch, kind="busy")


def _busy_date(status: int, seconds: float, zone: str = " GMT") -> Switch:
    async def act(talk: Talk) -> None:
        date = formatdate(time.time() + seconds, usegmt=True).removesuffix(" GMT") + zone
        await talk.send(answer(b"later", f"Retry-After: {date}", status=f"{status} Later"))

    return Switch(act, fetch="busy", kind="busy")


def _typed(body: bytes, *headers: str, fetch: str = "") -> Switch:
    return Switch(says(answer(body, *headers)), fetch=fetch, kind="content")


def _charset(label: str) -> Switch:
    return _typed(_PAGE.replace(b"hello", "h\u00e9llo".encode()), f"Content-Type: text/html; charset={label}")


_STATUSES = {
    "status_204": Switch(says(b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"), kind="status"),
    "status_205": Switch(says(answer(b"hello", status="205 Reset")), kind="status"),
    "status_206": Switch(
        says(answer(b"hello", "Content-Range: bytes 0-4/900", status="206 Partial")),
        "protocol",
        kind="status",
    ),
    "status_300": _status(300, "http_error"),
    "status_304": _status(304, "http_error"),
    "status_302_without_location": _status(302, "http_error"),
    "status_400": _status(400, "http_error"),
    "status_401": _status(401, "auth_required", "WWW-Authenticate: Basic realm=x"),
    "status_403": _status(403, "blocked"),
    "status_404": _status(404, "page_not_found"),
    "status_407": _status(407, "auth_required"),
    "status_408": _status(408, "http_error"),
    "status_410": _status(410, "page_gone"),
    "status_418": _status(418, "http_error"),
    "status_451": _status(451, "page_gone"),
    "status_500": _status(500, "server_error"),
    "status_502": _status(502, "server_error"),
    "status_503": _status(503, "server_error"),
    "status_504": _status(504, "server_error"),
    "status_599": _status(599, "server_error"),
}

_REDIRECTS = {
    **{f"to_ok_{code}": _to("/ok", "", code) for code in (301, 302, 303, 307, 308)},
    "to_ok_absolute": _to("http://{me}/ok", ""),
    "to_ok_scheme_relative": _to("//{me}/ok", ""),
    "to_ok_fragment": _to("/ok#part", ""),
    "to_self": _to("/to_self", "redirect_loop"),
    "to_loop": _to("/to_loop_back", "redirect_loop"),
    "to_loop_back": _to("/to_loop", "redirect_loop"),
    "to_chain": Switch(_long_chain, fetch="redirect_loop", kind="redirect"),
    "to_growing": Switch(_growing, fetch="redirect_loop", kind="redirect"),
    "to_countdown": Switch(_countdown, fetch="", kind="redirect"),
    "to_slow_chain": Switch(_slow_chain, fetch="redirect_loop", kind="redirect"),
    "to_empty": _to("", "redirect_loop"),
    "to_utf8": _to("/ok/caf\u00e9", ""),
    "to_latin1": _to(b"/ok/caf\xe9", "refused"),
    "to_space": _to("/ok/a b", "refused"),
    "to_file": _to("file:///etc/passwd", "refused"),
    "to_ftp": _to("ftp://127.0.0.1/x", "refused"),
    "to_data": _to("data:text/plain,hello", "refused"),
    "to_javascript": _to("javascript:alert(1)", "refused"),
    "to_gopher": _to("gopher://127.0.0.1:70/x", "refused"),
    "to_userinfo": _to("http://user:word@{me}/ok", "refused"),
    "to_backslash": _to("http://{me}\\@10.0.0.1/", "refused"),
    "to_port_0": _to("http://127.0.0.1:0/", "refused"),
    "to_port_22": _to("http://127.0.0.1:22/", "refused"),
    "to_private": _to("http://10.0.0.1/", "refused"),
    "to_metadata": _to("http://169.254.169.254/", "refused"),
    "to_number": _to("http://2130706433/", "refused"),
    "to_localhost_name": _to("http://metadata.internal/", "refused"),
    "to_long": _to("/" + "a" * 5_000, "refused"),
    "to_refresh": Switch(
        says(answer(_PAGE, "Content-Type: text/html", "Refresh: 0; url=/status_404")), kind="redirect"
    ),
    "to_cookie": Switch(_cookie_redirect, fetch="", kind="redirect"),
    "cookie": Switch(
        says(answer(_PAGE, "Content-Type: text/html", "Set-Cookie: id=secret", "Set-Cookie: b=c")),
        kind="content",
    ),
}

_BUSY = {
    "busy_429": _busy(429),
    "busy_429_seconds": _busy(429, "7"),
    "busy_429_zero": _busy(429, "0"),
    "busy_429_negative": _busy(429, "-1"),
    "busy_429_plus": _busy(429, "+5"),
    "busy_429_fraction": _busy(429, "1.5"),
    "busy_429_exponent": _busy(429, "1e3"),
    "busy_429_hex": _busy(429, "0x10"),
    "busy_429_empty": _busy(429, ""),
    "busy_429_word": _busy(429, "soon"),
    "busy_429_list": _busy(429, "120, 60"),
    "busy_429_twice": _busy(429, "120", "60"),
    "busy_429_twice_equal": _busy(429, "5", "5"),
    "busy_429_day": _busy(429, "86400"),
    "busy_429_30_digits": _busy(429, "1" + "0" * 30),
    "busy_429_5000_digits": _busy(429, "9" * 5_000),
    "busy_429_other_digits": _busy(429, "\u00b2"),
    "busy_429_date": _busy_date(429, 30),
    "busy_429_date_without_zone": _busy_date(429, 30, ""),
    "busy_429_date_past": _busy_date(429, -3_600),
    "busy_429_date_far": _busy(429, "Fri, 31 Dec 9999 23:59:59 GMT"),
    "busy_429_date_impossible": _busy(429, "Tue, 31 Feb 2026 00:00:00 GMT"),
    "busy_503_seconds": _busy(503, "7"),
    "busy_503_date": _busy_date(503, 30),
    "busy_503_garbage": _busy(503, "soon"),
}

_PDF_LABEL, _HTML_LABEL = "Content-Type: application/pdf", "Content-Type: text/html"
_CHARSETS = ("punycode", "idna", "zlib_codec", "utf-7", "undefined", "rot13", "hex", "none", "utf8mb4")
_CONTENT = {
    "page": _typed(_PAGE, _HTML_LABEL),
    **{f"charset_{label}": _charset(label) for label in _CHARSETS},
    "charset_list": _charset("utf-8,gbk"),
    "charset_empty": _charset(""),
    "charset_quoted": _charset('"utf-8"'),
    "charset_single_quoted": _charset("'utf-8'"),
    "charset_long": _charset("x" * 5_000),
    "charset_twice": _charset("utf-8; charset=utf-7"),
    "type_pdf_is_html": _typed(_PAGE, _PDF_LABEL, fetch="refused"),
    "type_html_is_pdf": _typed(b"%PDF-1.4\n\0\0\0", _HTML_LABEL),
    "type_html_with_nul": _typed(_PAGE + b"\0", _HTML_LABEL),
    "type_none": _typed(_PAGE),
    "type_none_with_nul": _typed(b"\0\1\2\3" * 64),
    "type_garbage": _typed(_PAGE, "Content-Type: ;;;=,"),
    "type_twice": _typed(_PAGE, _HTML_LABEL, "Content-Type: application/json"),
    "type_latin1": _typed(_PAGE, "Content-Type: text/h\u00e9ml"),
    "type_json_is_html": _typed(_PAGE, "Content-Type: application/json"),
    "type_image": _typed(b"\x89PNG\r\n\x1a\n\0\0\0", "Content-Type: image/png", fetch="unsupported_type"),
    "text_nul": _typed(b"a\0b", "Content-Type: text/plain"),
    "json_surrogate": _typed(b'{"a": "\\ud83d"}', "Content-Type: application/json"),
    "json_nan": _typed(b'{"a": NaN}', "Content-Type: application/json"),
    "json_1e999": _typed(b'{"a": 1e999}', "Content-Type: application/json"),
    "json_digits": _typed(b'{"a": ' + b"9" * 5_000 + b"}", "Content-Type: application/json"),
    "json_deep": _typed(b"[" * 20_000, "Content-Type: application/json"),
}

SWITCHES = _STATUSES | _REDIRECTS | _BUSY | _CONTENT

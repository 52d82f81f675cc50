"""What may any bytes do to a parser? One function for each parser: it takes bytes and checks what must hold.

They are written so that Hypothesis, a coverage-guided fuzzer and a plain mutator can all feed them; a
property that fails is an `AssertionError`, a crash is any other exception. Next: `fuzz_rows`, for what was
parsed before and comes back out of a store.
"""

import io
import json
import math
import re
from collections.abc import Callable
from typing import Any, Final

from sift_batch import Options, Result, Target, host_key, redact_urls
from sift_batch._engine.attempt import seconds
from sift_batch._store.rows import options_from, result_from
from sift_batch.cli.targets import BadLine, Targets, parse_line, read_targets
from sift_batch.fetch import check_target
from sift_batch.fetch._reply import retry_after

_PLAIN_KEY: Final = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")
_IPV6_KEY: Final = re.compile(r"[0-9a-f:]*:[0-9a-f:]*")
_LEAK: Final = "https://kestrel.example/orchid?sig=tok1"


def _text(data: bytes) -> str:
    """Return a text for any bytes; what is no UTF-8 becomes lone surrogates."""
    return data.decode(errors="surrogateescape")


def fuzz_host_key(data: bytes) -> None:
    """A key is short, of the host alone, and the key of itself; case and one trailing dot change nothing."""
    text = _text(data)
    for url in (text, f"http://{text}"):
        key = host_key(url)
        assert type(key) is str
        assert len(key) <= 255
        key.encode()
        if url.isascii():
            assert host_key(url.swapcase()) == key
        if _PLAIN_KEY.fullmatch(key):
            assert host_key(f"http://{key}/") == host_key(f"https://u@{key}.:80?x") == key
        elif _IPV6_KEY.fullmatch(key) and key.count(":") > 1:
            assert host_key(f"http://[{key}]/") == key


def fuzz_stored_json(data: bytes) -> None:
    """Options and results read back are of their types, or refused with an error that a store passes on."""
    try:
        options = options_from(_text(data))
    except Exception:  # the store's bridge makes a `StoreError` of any
        options = Options()
    assert type(options) is Options
    try:
        result = result_from(data)
    except Exception:
        return
    assert type(result) is Result


def fuzz_lines(data: bytes) -> None:
    """A file gives targets and complaints, one for each line that says something; nothing is quoted."""
    complaints: list[tuple[str, int, str]] = []
    with Targets() as targets:
        bad = read_targets(
            targets, (), io.BytesIO(data), {}, check_target, lambda *said: complaints.append(said)
        )
        assert bad == len(complaints)
        items = list(targets)
    lines = [item.line or 0 for item in items] + [number for _, number, _ in complaints]
    assert len(set(lines)) == len(lines)
    assert all(0 < number <= data.count(b"\n") + 1 for number in lines)
    for _, _, reason in complaints:
        assert reason.isascii()
        assert reason.isprintable()
    for item in items:
        _check_again(item.target, item.extra)


def _check_again(target: Target, extra: Any) -> None:
    """A target that was taken, written as a line, is the same target with the same other keys."""
    names = ("mode", "question", "pages", "grep", "jq", "context", "recover")
    options = {name: getattr(target.options, name) for name in names}
    line = json.dumps({**(extra or {}), "url": target.url, "options": options})
    try:
        again = parse_line(line.encode(), {}, check_target)
    except BadLine as error:
        raise AssertionError("what was taken is refused when it comes again") from error
    assert again is not None
    assert again[0] == target
    assert (again[1] or {}) == (extra or {})


def fuzz_retry_after(data: bytes) -> None:
    """A Retry-After header asks for 1 to 600 seconds, or for none; a fetch's own value is finite or none."""
    asked = retry_after(data, 1_700_000_000.0)
    assert asked is None or 1 <= asked <= 600
    for value in _values(data):
        given = seconds(value)
        assert given is None or (type(given) is float and 0 < given < math.inf)


def _values(data: bytes) -> list[Any]:
    """Return what JSON or Python's numbers make of bytes, besides the text itself."""
    found: list[Any] = [data, _text(data), bool(data), int.from_bytes(data, "little")]
    for parse in (json.loads, float, int, complex):
        try:
            found.append(parse(data.decode("ascii")))
        except (ValueError, RecursionError):
            continue
    return found


def fuzz_redact(data: bytes) -> None:
    """Whatever an event holds: nothing is raised, and a URL in any of its values does not come out."""
    text = _text(data)
    middle = len(text) // 2
    values = [
        *_values(data),
        _LEAK,
        text[:middle] + _LEAK + text[middle:],
        {text: _LEAK, _LEAK: text},
        [text, [_LEAK, {"x": (_LEAK,)}]],
        ValueError(_LEAK + text),
        bytearray(_LEAK.encode()),
    ]
    event = {"event": text, text: _LEAK, "positional_args": (_LEAK, text)}
    event |= {f"field_{number}": value for number, value in enumerate(values)}
    for given in (event, {"event": text + _LEAK, "exc_info": ValueError(text + _LEAK)}):
        clean = redact_urls(None, "info", dict(given))
        shown = repr(clean)
        for part in ("kestrel", "orchid", "tok1"):
            # Text of the fuzzer's own that says so too is no leak of ours.
            assert part in text or part not in shown


PARSERS: Final[dict[str, Callable[[bytes], None]]] = {
    "host_key": fuzz_host_key,
    "stored_json": fuzz_stored_json,
    "lines": fuzz_lines,
    "retry_after": fuzz_retry_after,
    "redact": fuzz_redact,
}

SEEDS: Final[dict[str, tuple[bytes, ...]]] = {
    "host_key": (
        b"http://user@Ex%61mple.com.:80/x?y#z", b"HTTPS:\\\\[::FFFF:7f00:1]:443", b"0x7f.1", b"127.0.0.1.",
        "http://b\u00fccher\u3002test".encode(), b"foo://H.test/x", b"http://xn--bcher-kva.test", b"1..2",
        b"http://\xff\xfe", b"[2001:DB8::1]", b" ht\ntp:h\t.test",
    ),
    "stored_json": (
        b'{"mode":"raw","context":false,"recover":true}', b'{"content":"x","meta":{"a":[1,2.5,null]}}',
        b"[" * 2_000, b"NaN", b'{"content":1e999,"meta":NaN}', b"1" * 5_000, b'{"mode":5}', b"\xff\x00",
    ),
    "lines": (
        b"http://a.org/\r\nhttp://b.org/?q=1\n", b'{"url":"http://a.org/","options":{"mode":"raw"}}',
        b'\xef\xbb\xbf# note\n\n{"url":"http://a.org/","n":1,"n":2}\n', b'{"url":"http://a.org/","x":NaN}',
        b'{"url":"http://a.org/","x":' + b"[" * 200 + b"]" * 200 + b"}", b"http://a\0b/\n\xff\xfe\n",
        b'{"url":"http://a.org/","x":' + b"9" * 5_000 + b"}", b'{"url":"http://a.org/","x":"\\ud800"}',
        b"a" * 1_048_577 + b"\nhttp://a.org/", b'["x"]\n"y"\n{}\n', b'{"url":"http://a.org/","x":1e999}',
    ),
    "retry_after": (
        b"120", b" 3 ", b"-1", b"1e3", b"9" * 5_000, b"Fri, 31 Dec 2027 23:59:59 GMT", b"nan", b"inf",
        b"Fri, 31 Dec 9999 23:59:59 -2359", b"31 Feb 2027 00:00:00", b"\xb2", b"",
    ),
    "redact": (
        b"request finished", b"%s took %s", b"GET /x", b"\xff\x00\x1b[31m", b"user=kes", b"%(a)s %1000d",
        b"\xe2\x80\xae", b"http://", b"{}", b"a" * 2_000,
    ),
}  # fmt: skip
"""What a fuzzer begins with."""

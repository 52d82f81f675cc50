"""Switches: what can be wrong before and in the head of an answer. See `hostile`."""

import itertools

from hostile_talk import Switch, Talk, answer, says

_OK = b"HTTP/1.1 200 OK\r\n"
_TAIL = b"Content-Length: 2\r\n\r\nhi"
_REDOS = b"a: " + b" " * 99_000


async def _silence(talk: Talk) -> None:
    await talk.silence()


async def _reset(talk: Talk) -> None:
    talk.reset()


async def _nothing(talk: Talk) -> None:
    """Close."""


async def _drip(talk: Talk) -> None:
    await talk.drip(_OK + b"X-Drip: " + b"x" * 90_000)


async def _endless(talk: Talk) -> None:
    await talk.send(_OK)
    await talk.flood(b"X-%d: %s\r\n" % (n, b"y" * 50) for n in itertools.count())


async def _endless_line(talk: Talk) -> None:
    await talk.send(_OK + b"X-Endless: ")
    await talk.flood(itertools.repeat(b"z" * 4_096))


async def _interim(talk: Talk) -> None:
    await talk.flood(itertools.repeat(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"))


async def _interim_drip(talk: Talk) -> None:
    await talk.drip(itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n"), every=0.5)


async def _cut(talk: Talk) -> None:
    await talk.send(_OK + b"Content-Le")


async def _reset_in_head(talk: Talk) -> None:
    await talk.send(_OK + b"Content-Le")
    talk.reset()


def _malformed(data: bytes, code: str = "protocol") -> Switch:
    return Switch(says(data), code, kind="head")


SWITCHES = {
    "ok": Switch(says(answer(b"hello", "Content-Type: text/plain")), kind="head"),
    "ok_open": Switch(says(answer(b"hello", "Content-Type: text/plain"), hold=True), kind="head"),
    # silence, drip, cut, reset
    "head_silence": Switch(_silence, "timeout", kind="head", slow=True),
    "head_status_then_silence": Switch(says(_OK, hold=True), "timeout", kind="head", slow=True),
    "head_drip": Switch(_drip, "timeout", kind="head", slow=True),
    "head_interim_drip": Switch(_interim_drip, "timeout", kind="head", slow=True),
    "head_nothing": Switch(_nothing, "protocol", kind="head"),
    "head_cut": Switch(_cut, "protocol", kind="head"),
    "head_reset": Switch(_reset, "protocol", kind="head"),
    "head_reset_inside": Switch(_reset_in_head, "protocol", kind="head"),
    # too much
    "head_endless": Switch(_endless, "protocol", kind="head"),
    "head_endless_line": Switch(_endless_line, "protocol", kind="head"),
    "head_endless_interim": Switch(_interim, "protocol", kind="head"),
    "head_10000_headers": _malformed(_OK + b"".join(b"x%d: y\r\n" % n for n in range(10_000)) + _TAIL),
    "head_257_headers": _malformed(_OK + b"x: y\r\n" * 256 + _TAIL),
    "head_256_headers": _malformed(_OK + b"x: y\r\n" * 255 + _TAIL, ""),
    "head_128_kib": _malformed(_OK + b"x: " + b"y" * 2**17 + b"\r\n" + _TAIL),
    "head_128_kib_many": _malformed(_OK + (b"x: " + b"y" * 1_019 + b"\r\n") * 128 + _TAIL),
    "head_90_kib": _malformed(_OK + b"x: " + b"y" * 90_000 + b"\r\n" + _TAIL, ""),
    "head_interim_then_ok": _malformed(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + _OK + _TAIL, ""
    ),
    # blanks that send a backtracking pattern back once for each of them
    "head_blanks_nul": _malformed(_OK + _REDOS + b"\0\r\n" + _TAIL),
    "head_blanks_del": _malformed(_OK + _REDOS + b"\x7f\r\n" + _TAIL),
    "head_blanks_cr": _malformed(_OK + _REDOS + b"\rx\r\n" + _TAIL),
    "head_blanks_vt": _malformed(_OK + _REDOS + b"\x0b\r\n" + _TAIL),
    "head_blanks": _malformed(_OK + _REDOS + b"\r\n" + _TAIL, ""),
    "head_blanks_folded": _malformed(_OK + b"a:" + b"\r\n" + b" \r\n" * 200 + b"\0\r\n" + _TAIL),
    # malformed
    "head_garbage": _malformed(b"lorem ipsum dolor\r\n\r\nsit amet"),
    "head_http09": _malformed(b"<html>hello</html>"),
    "head_http09_open": Switch(says(b"<html>hello</html>", hold=True), "protocol", kind="head"),
    "head_http2": _malformed(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64"),
    "head_tls": _malformed(b"\x15\x03\x01\x00\x02\x02\x28"),
    "head_blank_first": _malformed(b"\r\n" + _OK + _TAIL),
    "head_status_600": _malformed(b"HTTP/1.1 600 What\r\n" + _TAIL),
    "head_status_99": _malformed(b"HTTP/1.1 099 What\r\n" + _TAIL),
    "head_status_word": _malformed(b"HTTP/1.1 OK\r\n" + _TAIL),
    "head_version_2": _malformed(b"HTTP/2.0 200 OK\r\n" + _TAIL),
    "head_101": _malformed(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
    "head_no_colon": _malformed(_OK + b"what is this\r\n" + _TAIL),
    "head_space_in_name": _malformed(_OK + b"X y: z\r\n" + _TAIL),
    "head_space_before_colon": _malformed(_OK + b"X : z\r\n" + _TAIL),
    "head_nul_in_name": _malformed(_OK + b"X\0y: z\r\n" + _TAIL),
    "head_control_in_name": _malformed(_OK + b"X\x01y: z\r\n" + _TAIL),
    "head_nul_in_value": _malformed(_OK + b"X: a\0b\r\n" + _TAIL),
    "head_empty_name": _malformed(_OK + b": z\r\n" + _TAIL),
    # odd, and read by browsers too
    "head_bare_lf": _malformed(b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", ""),
    "head_empty_value": _malformed(_OK + b"Server:\r\n" + _TAIL, ""),
    "head_latin1_value": _malformed(_OK + b"X: caf\xe9\r\n" + _TAIL, ""),
    "head_control_in_value": _malformed(_OK + b"Set-Cookie: a=\x01\r\n" + _TAIL, ""),
    "head_http10": _malformed(b"HTTP/1.0 200 OK\r\n\r\nhi", ""),
    "head_no_reason": _malformed(b"HTTP/1.1 200\r\n" + _TAIL, ""),
}

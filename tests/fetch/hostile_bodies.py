"""Switches: what can be wrong with a body, its length and its packing. See `hostile`."""

import functools
import gzip
import itertools
import zlib

from hostile_talk import Switch, Talk, answer, says

_CHUNKED = answer(b"", "Transfer-Encoding: chunked", "Content-Type: text/plain", length=None)
_UNTIL_CLOSE = answer(b"", "Content-Type: text/plain", length=None)
_TEXT = b"0123456789abcdef" * 64
_MIB = 2**20


@functools.cache
def _zeros(size: int) -> bytes:
    """Return `size` zeros, packed, without ever holding them."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = bytes(_MIB)
    packed = [packer.compress(block) for _ in range(size // _MIB)]
    return b"".join([*packed, packer.flush()])


def _packed(coding: str, data: bytes, **more: str) -> bytes:
    return answer(data, f"Content-Encoding: {coding}", "Content-Type: text/plain", **more)


async def _silence(talk: Talk) -> None:
    await talk.send(answer(_TEXT, length="5000"))
    await talk.silence()


async def _head_then_silence(talk: Talk) -> None:
    await talk.send(answer(length="5000"))
    await talk.silence()


async def _drip(talk: Talk) -> None:
    await talk.send(answer(length="90000"))
    await talk.drip(b"x" * 90_000)


async def _chunk_drip(talk: Talk) -> None:
    await talk.send(_CHUNKED)
    await talk.drip(itertools.repeat(b"1\r\nx\r\n"))


async def _quick_drip(talk: Talk) -> None:
    """Many tiny packets, no longer than a page: whole in the end."""
    await talk.send(_UNTIL_CLOSE)
    for _ in range(2_000):
        await talk.send(b"ab")


async def _reset_before(talk: Talk) -> None:
    await talk.send(answer(length="5000"))
    talk.reset()


async def _reset_inside(talk: Talk) -> None:
    await talk.drip([answer(length="5000"), b"x" * 1_000])
    talk.reset()


async def _endless(talk: Talk) -> None:
    await talk.send(_UNTIL_CLOSE)
    await talk.flood(itertools.repeat(b"x" * 65_536))


async def _endless_chunks(talk: Talk) -> None:
    await talk.send(_CHUNKED)
    await talk.flood(itertools.repeat(b"1\r\nx\r\n" * 2_000))


async def _endless_extensions(talk: Talk) -> None:
    await talk.send(_CHUNKED)
    await talk.flood(itertools.repeat((b"1;" + b"e" * 200 + b"\r\nx\r\n") * 50))


async def _long_extension(talk: Talk) -> None:
    await talk.send(_CHUNKED + b"1;")
    await talk.flood(itertools.repeat(b" " * 4_096))


async def _endless_trailers(talk: Talk) -> None:
    await talk.send(_CHUNKED + b"2\r\nhi\r\n0\r\n")
    await talk.flood(b"X-%d: y\r\n" % n for n in itertools.count())


async def _endless_line(talk: Talk) -> None:
    await talk.send(_CHUNKED + b"2\r\nhi\r\n0\r\nX: ")
    await talk.flood(itertools.repeat(b"z" * 4_096))


async def _bomb_1000(talk: Talk) -> None:
    await talk.send(_packed("gzip", _zeros(100 * _MIB)))


async def _bomb_endless(talk: Talk) -> None:
    await talk.send(answer(b"", "Content-Encoding: gzip", length=None))
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    await talk.flood(packer.compress(bytes(_MIB)) for _ in itertools.count())


async def _bomb_twice(talk: Talk) -> None:
    await talk.send(_packed("gzip, gzip", gzip.compress(_zeros(10 * _MIB))))


async def _bomb_in_members(talk: Talk) -> None:
    await talk.send(_packed("gzip", gzip.compress(bytes(_MIB)) * 20))


async def _members(talk: Talk) -> None:
    await talk.send(answer(b"", "Content-Encoding: gzip", length=None))
    await talk.flood(itertools.repeat(gzip.compress(b"") * 500))


async def _redirect_bomb(talk: Talk) -> None:
    location = f"Location: http://{talk.authority}/ok"
    await talk.send(answer(_zeros(10 * _MIB), location, "Content-Encoding: gzip", status="302 Found"))


def _length(value: str, code: str = "protocol") -> Switch:
    return Switch(says(answer(b"hello", length=value)), code, kind="length")


def _lengths(*headers: str, code: str = "protocol", body: bytes = b"hello") -> Switch:
    return Switch(says(answer(body, *headers, length=None)), code, kind="length")


def _chunks(data: bytes, code: str = "protocol") -> Switch:
    return Switch(says(_CHUNKED + data), code, kind="length")


def _gz(data: bytes, code: str = "protocol", coding: str = "gzip") -> Switch:
    return Switch(says(_packed(coding, data)), code, kind="packed")


_WHOLE = gzip.compress(_TEXT)

SWITCHES = {
    "body_silence": Switch(_silence, "timeout", kind="body", slow=True),
    "body_head_then_silence": Switch(_head_then_silence, "timeout", kind="body", slow=True),
    "body_drip": Switch(_drip, "timeout", kind="body", slow=True),
    "body_chunk_drip": Switch(_chunk_drip, "timeout", kind="body", slow=True),
    "body_quick_drip": Switch(_quick_drip, kind="body"),
    "body_cut": Switch(says(answer(b"hello", length="5000")), "protocol", kind="body"),
    "body_cut_at_once": Switch(says(answer(b"", length="5000")), "protocol", kind="body"),
    "body_cut_chunk": _chunks(b"ff\r\nhello"),
    "body_cut_between_chunks": _chunks(b"5\r\nhello\r\n"),
    "body_cut_before_trailers": _chunks(b"5\r\nhello\r\n0\r\n"),
    "body_reset_before": Switch(_reset_before, "protocol", kind="body"),
    "body_reset_inside": Switch(_reset_inside, "protocol", kind="body"),
    "body_endless": Switch(_endless, "too_large", kind="body"),
    "body_endless_chunks": Switch(_endless_chunks, "too_large", kind="body"),
    "body_endless_extensions": Switch(_endless_extensions, "too_large", kind="body"),
    "body_long_extension": Switch(_long_extension, "protocol", kind="body"),
    "body_endless_trailers": Switch(_endless_trailers, "protocol", kind="body"),
    "body_endless_trailer_line": Switch(_endless_line, "protocol", kind="body"),
    "body_blanks_in_trailer": _chunks(b"2\r\nhi\r\n0\r\nx: " + b" " * 99_000 + b"\0\r\n\r\n"),
    "body_blanks_in_extension": _chunks(b"2;" + b" " * 99_000 + b"\n\r\nhi\r\n0\r\n\r\n"),
    # lengths
    "length_long": Switch(says(answer(b"hello, and more", length="5")), "", kind="length"),
    "length_long_open": Switch(says(answer(b"hello, and more", length="5"), hold=True), "", kind="length"),
    "length_unpacked": Switch(
        says(_packed("gzip", _WHOLE, length=str(len(_TEXT)))), "protocol", kind="length"
    ),
    "length_unpacked_open": Switch(
        says(_packed("gzip", _WHOLE, length=str(len(_TEXT))), hold=True), "timeout", kind="length", slow=True
    ),
    "length_short_packed": Switch(says(_packed("gzip", _WHOLE, length="20")), "protocol", kind="length"),
    "length_negative": _length("-1"),
    "length_plus": _length("+5"),
    "length_word": _length("five"),
    "length_hex": _length("0x5"),
    "length_empty": _length(" "),
    "length_fraction": _length("5.0"),
    "length_10_gib": _length(str(10 * 2**30), "too_large"),
    "length_30_digits": _length("1" + "0" * 30),
    "length_5000_digits": _length("9" * 5_000),
    "length_two": _lengths("Content-Length: 5", "Content-Length: 4"),
    "length_list": _lengths("Content-Length: 5, 4"),
    "length_two_equal": _lengths("Content-Length: 5", "Content-Length: 5", code=""),
    "length_with_chunked": _lengths(
        "Content-Length: 5", "Transfer-Encoding: chunked", body=b"5\r\nhello\r\n0\r\n\r\n"
    ),
    "length_gzip_chunked": _lengths("Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"),
    "length_two_chunked": _lengths(
        "Transfer-Encoding: chunked", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"
    ),
    # chunks
    "chunk_ok": _chunks(b"5;a=b\r\nhello\r\n0\r\nX-Trailer: y\r\n\r\n", ""),
    "chunk_size_word": _chunks(b"zz\r\nhello\r\n0\r\n\r\n"),
    "chunk_size_negative": _chunks(b"-5\r\nhello\r\n0\r\n\r\n"),
    "chunk_size_0x": _chunks(b"0x5\r\nhello\r\n0\r\n\r\n"),
    "chunk_size_empty": _chunks(b"\r\nhello\r\n0\r\n\r\n"),
    "chunk_size_huge": _chunks(b"f" * 40 + b"\r\nhello\r\n0\r\n\r\n"),
    "chunk_size_too_big": _chunks(b"ffffffffffffffff\r\nhello"),
    "chunk_no_line_end": _chunks(b"5\r\nhelloXX0\r\n\r\n"),
    "chunk_bare_lf": Switch(says(_CHUNKED + b"5\nhello\n0\n\n"), "protocol", kind="length"),
    "chunk_bad_trailer": _chunks(b"5\r\nhello\r\n0\r\nno colon\r\n\r\n"),
    # packing
    "gzip_ok": _gz(_WHOLE, ""),
    "gzip_x": _gz(_WHOLE, "", "x-gzip"),
    "gzip_upper": _gz(_WHOLE, "", "GZip"),
    "gzip_two_members": _gz(_WHOLE + _WHOLE, ""),
    "gzip_padding": _gz(_WHOLE + bytes(600), ""),
    "gzip_empty": _gz(b"", ""),
    "gzip_cut": _gz(_WHOLE[:-12]),
    "gzip_cut_checksum": _gz(_WHOLE[:-1]),
    "gzip_cut_second_member": _gz(_WHOLE + _WHOLE[:15]),
    "gzip_bad_checksum": _gz(_WHOLE[:-8] + b"\0\0\0\0" + _WHOLE[-4:]),
    "gzip_garbage": _gz(b"this is plain text"),
    "gzip_zlib": _gz(zlib.compress(_TEXT)),
    "identity": _gz(_TEXT, "", "identity"),
    "coding_br": _gz(b"\x0b\x02\x80hello\x03", "refused", "br"),
    "coding_zstd": _gz(b"\x28\xb5\x2f\xfd\x04\x00", "refused", "zstd"),
    "coding_deflate": _gz(zlib.compress(_TEXT), "refused", "deflate"),
    "coding_unknown": _gz(_TEXT, "refused", "lorem"),
    "coding_two_headers": Switch(
        says(answer(gzip.compress(_WHOLE), "Content-Encoding: gzip", "Content-Encoding: gzip")),
        "refused",
        kind="packed",
    ),
    "bomb_1000": Switch(_bomb_1000, "too_large", kind="packed"),
    "bomb_endless": Switch(_bomb_endless, "too_large", kind="packed"),
    "bomb_twice": Switch(_bomb_twice, "refused", kind="packed"),
    "bomb_in_members": Switch(_bomb_in_members, "too_large", kind="packed"),
    "gzip_endless_members": Switch(_members, "too_large", kind="packed"),
    "bomb_in_redirect": Switch(_redirect_bomb, "", fetch="", kind="packed"),
}

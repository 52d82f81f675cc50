"""A program: an application whose hostile targets hold words that nobody but their owner may hear of.

    python hostile_canary.py MODE < plan

MODE says what the application did about logging: `sealed` called `seal_logging`, `plain` nothing at all,
`debug` put a handler of its own on the root logger, which keeps every record. In each, every logger's
level is DEBUG. The plan is one JSON object: `port` of a hostile server with the switches below, `tls`,
`garbage` and `closed` (ports of one with a certificate for another name, of one that speaks no TLS, and
of none), `ca_file`, `store`, `quick` (one caller is enough, and no target that needs seconds) and `words`:
`host`, `path`, `query`, `user`, `option`. It prints one JSON object: `targets` (what the owner reads about
each), `names` (of tasks, threads, commands and temporary files, as they were seen while the job ran) and
`records` (logger and text, in `debug`).
"""

import contextlib
import json
import logging
import os
import re
import socket
import sys
import tempfile
import threading
from functools import partial
from pathlib import Path
from urllib.parse import unquote

import trio
from hostile_talk import Switch, Talk, answer
from reader_processes import children

from sift_batch import Caller, CallerClass, Config, Options, Target, open_runner, open_store, seal_logging


def word_of(talk: Talk) -> bytes:
    """Give the last part of the path that was asked for: one of the words."""
    return unquote(talk.target.partition("?")[0].rpartition("/")[2]).encode()


def _echo(before: bytes, after: bytes, *headers: str, status: str = "200 OK") -> Switch:
    """Answer with the word in the body, and in the headers where they have {word}."""

    async def act(talk: Talk) -> None:
        word = word_of(talk)
        told = [header.replace("{word}", word.decode()) for header in headers]
        await talk.send(answer(before + word + after, *told, status=status))

    return Switch(act)


def _raw(text: str) -> Switch:
    async def act(talk: Talk) -> None:
        await talk.send(text.replace("{word}", word_of(talk).decode()).encode("latin-1"))

    return Switch(act)


_HTML = "Content-Type: text/html"
_PAGE = b"<html><head><title>", b"</title></head><body><p>words to read</p></body></html>"
SWITCHES = {
    "echo": _echo(*_PAGE, _HTML, 'ETag: "{word}"', "Set-Cookie: {word}={word}"),
    "missing": _echo(*_PAGE, _HTML, status="404 {word}"),
    "label": _echo(b"hello ", b"", "Content-Type: text/{word}; charset={word}"),
    "packed": _echo(b"hello ", b"", "Content-Encoding: {word}"),
    "busy": _echo(b"", b"", "Retry-After: {word}", status="429 {word}"),
    "pdf": _echo(b"%PDF-1.4\n", b"\n1 0 obj << /Type /Catalog", "Content-Type: application/pdf"),
    "pdf_label": _echo(b"<p>", b"", "Content-Type: application/pdf"),
    "feed": _echo(b"<rss><channel><title>", b"&x;<item>", "Content-Type: application/rss+xml"),
    "json": _echo(b'{"a": "', b'"}', "Content-Type: application/json"),
    "no_json": _echo(b'{"a": ', b"}", "Content-Type: application/json"),
    "table": _echo(b"<table><tr><td>" + b"<td>" * 1_000, b"", _HTML),
    "to_user": _echo(b"", b"", "Location: http://{word}:{word}@{word}.org/", status="302 {word}"),
    "to_file": _echo(b"", b"", "Location: file:///{word}", status="302 Found"),
    "to_name": _echo(b"", b"", "Location: http://{word}.internal/{word}", status="302 Found"),
    "to_private": _echo(b"", b"", "Location: http://10.0.0.1/{word}", status="302 Found"),
    "to_bytes": _echo(b"", b"", "Location: /\u00e9{word}", status="302 Found"),
    "bad_head": _raw("HTTP/1.1 200 OK\r\nX {word}: {word}\r\nContent-Length: 2\r\n\r\nhi"),
    "bad_status": _raw("{word} 200 OK\r\n\r\n"),
    "bad_length": _raw("HTTP/1.1 200 OK\r\nContent-Length: {word}\r\n\r\nhi"),
    "bad_chunk": _raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{word}\r\nhi\r\n0\r\n\r\n"),
    "bad_gzip": _raw("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 6\r\n\r\n{word}"),
    "cut": _raw("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{word}"),
    "robots.txt": _raw(
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nUser-agent: *\nDisallow: /secret\nX-{word}: \x01\n"
    ),
    "secret": _echo(*_PAGE, _HTML),
}


def targets_of(plan: dict, *, quick: bool) -> list[Target]:
    """Give a target for every way to fail (`quick`: that needs no time), with the words in every place."""
    words = plan["words"]
    path, option = words["path"], words["option"]
    port = plan["port"]

    def url(switch: str, host: str = "a", port: int = port, scheme: str = "http") -> str:
        return f"{scheme}://{host}.{words['host']}.org:{port}/{switch}/{path}?{words['query']}#{path}"

    switches = [name for name in SWITCHES if name not in ("busy", "robots.txt")]
    odd = ["bomb_in_members", "head_garbage", "to_loop", "head_reset"]
    json_page = url("json")
    slow = [
        Target(url("body_drip")),
        Target(url("busy", "busy")),
        Target(json_page, Options(jq=f"def {option}: {option}; {option}")),
    ]
    return [
        *(Target(url(name)) for name in [*switches, *odd]),
        *(Target(url("echo", host)) for host in ("nowhere", "broken", "odd", "inside", "many", "none")),
        Target(url("echo", port=plan["closed"])),
        Target(url("ok", port=plan["tls"], scheme="https")),
        Target(url("ok", port=plan["garbage"], scheme="https")),
        Target(url("echo", port=plan["garbage"])),
        Target(f"http://{words['user']}:{words['user']}@{words['host']}.org/{path}"),
        Target(f"http://{words['host']}.org\\@{words['host']}.com/"),
        Target(f"http://{words['host']}.internal/{path}"),
        Target(f"http://{words['host']}/{path}"),
        Target(f"gopher://{words['host']}.org/{path}"),
        Target(f"http://xn--{words['host']}-.org/{path}"),
        Target(f"http://b\u00fccher-{words['host']}.org:{port}/echo/{path}"),
        Target(f"http://{words['host']}\ud800.org/{path}"),
        Target(f"http://[fe80::1%25{words['host']}]/{path}"),
        Target(f"{words['host']}.org/{path}"),
        Target(url("missing"), Options(recover=True)),
        Target(url("missing", "dead"), Options(recover=True)),
        Target(json_page, Options(jq=f".{option}.x.y")),
        Target(json_page, Options(jq=f'error("{option}")')),
        Target(json_page, Options(jq=f".{option} | (")),
        Target(json_page, Options(jq=f'import "{option}" as x; .')),
        Target(json_page, Options(jq=f"{option}(1)")),
        Target(json_page, Options(jq=f'"{option}"*1e9')),
        Target(json_page, Options(jq=f'"{option}"|halt_error')),
        Target(json_page, Options(jq=f'"{option}"|debug|stderr')),
        Target(url("no_json"), Options(jq=".")),
        Target(url("echo"), Options(grep=f"({option}")),
        Target(url("echo"), Options(grep=option)),
        Target(url("echo"), Options(grep=f"(?P<{option}>a)(?P<{option}>b)")),
        Target(url("echo"), Options(question=option)),
        Target(url("echo"), Options(mode=option)),
        Target(url("echo"), Options(pages=option)),
        Target(url("echo"), Options(mode="links")),
        Target(url("echo"), Options(mode="meta")),
        *([] if quick else slow),
    ]


async def resolve(host: str) -> list[str]:
    """Look a host up: some fail in every way that a resolver of an application's can."""
    await trio.lowlevel.checkpoint()
    match host.partition(".")[0]:
        case "nowhere":
            raise socket.gaierror(socket.EAI_NONAME, f"{host} is not known")
        case "broken":
            raise LookupError(host)
        case "odd":
            return [host]
        case "inside":
            return ["127.0.0.1", "10.0.0.1"]
        case "many":
            return ["127.0.0.1"] * 100
        case "none":
            return []
    return ["127.0.0.1"]


class Names(trio.abc.Instrument):
    """Notes what tasks, threads and children are called, and files, every few milliseconds by a thread."""

    def __init__(self) -> None:
        self._own = Path("/proc/self/cmdline").read_text().replace("\0", " ")
        self._run_sync = trio.to_thread.run_sync
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="MainThread")
        self.seen: dict[str, set[str]] = {name: set() for name in ("task", "thread", "command", "temporary")}

    def __enter__(self) -> "Names":
        trio.to_thread.run_sync = self._run_named  # some are over before anybody could look
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        trio.to_thread.run_sync = self._run_sync
        self._over.set()
        self._thread.join()

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        """Note the name of a task."""
        self.seen["task"].add(task.name)

    async def _run_named(self, *args, thread_name=None, **kwargs):
        if thread_name is not None:
            self.seen["thread"].add(thread_name)
        return await self._run_sync(*args, thread_name=thread_name, **kwargs)

    def _look(self) -> None:
        while not self._over.wait(0.004):
            self.seen["thread"].update(thread.name for thread in threading.enumerate())
            for thread in Path("/proc/self/task").iterdir():
                with contextlib.suppress(OSError):
                    self.seen["thread"].add((thread / "comm").read_text().strip())
            for child in children():
                with contextlib.suppress(OSError):
                    command = Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
                    # Between its birth and its beginning a child has no name, or its parent's.
                    self.seen["command"].update({command} - {"", self._own})
            for folder, _, files in os.walk(tempfile.gettempdir()):
                self.seen["temporary"].update([folder, *files])


class Keeper(logging.Handler):
    """Keeps every record, with the text that a stock formatter makes of it."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[tuple[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one."""
        self.records.append((record.name, self.format(record)))


async def run(plan: dict) -> list[dict]:
    """Run the job, once for a caller of each class, and give what its owner reads of each target."""
    from sift_batch.fetch import FetchConfig, open_fetcher

    for logger in [logging.getLogger(), *map(logging.getLogger, list(logging.root.manager.loggerDict))]:
        logger.setLevel(logging.DEBUG)
    settings = FetchConfig(
        allow=["127.0.0.0/8"],
        ports=None,
        resolve=resolve,
        ca_file=plan["ca_file"],
        robots=True,
        archive=f"http://dead.archive.org:{plan['port']}/missing/{{url}}",
        recover_restricted=True,
        total_timeout=4.0,
        retries=0,
        extract_timeout=2.0,
        max_wire_bytes=2**20,
        max_decoded_bytes=2**20,
    )
    config = Config(targets_per_job=100, retry_for=1.0, jobs_per_caller=2)
    found = []
    async with open_store(plan["store"]) as store, open_fetcher(settings) as fetch:
        async with open_runner(store, fetch, config) as runner:
            for kind in CallerClass if not plan["quick"] else (CallerClass.FLEET,):
                caller = Caller(f"the {kind} one", caller_class=kind)
                quick = plan["quick"] or kind is CallerClass.RESTRICTED
                job = await runner.submit(caller, targets_of(plan, quick=quick))
                await runner.wait(job.id)
                found += [
                    {
                        "code": target.code,
                        "state": str(target.status),
                        "error": target.error,
                        "hint": target.hint,
                        "note": str(target.result.meta.get("hint", "")) if target.result else "",
                        "shown": repr(target) + repr(target.result) + str(target),
                    }
                    for target in (await runner.status(job.id)).targets
                ]
    return found


def main(mode: str) -> None:
    """Run the plan that stands on standard input."""
    logging.getLogger("sift_batch").setLevel(logging.DEBUG)
    if mode == "sealed":
        seal_logging()
    keeper = Keeper()
    if mode == "debug":
        logging.getLogger().addHandler(keeper)
    plan = json.load(sys.stdin)
    with Names() as names:
        targets = trio.run(partial(run, plan), instruments=[names])
    told = {
        "targets": targets,
        "names": {
            kind: sorted({re.sub(r"\d+", "N", name) for name in seen}) for kind, seen in names.seen.items()
        },
        "records": keeper.records,
    }
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])

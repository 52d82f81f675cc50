"""What does each command make of a service that is none, or is broken? In this process, on loopback."""

import json
import socket
import threading
from collections.abc import Callable

import pytest
from remote_rig import Said, ran

import sift_batch.cli.remote as remote

pytestmark = pytest.mark.real

KEY = "siftb_" + "k" * 40
JOB = {
    "id": "0" * 32,
    "status": "running",
    "settled": False,
    "targets": {"total": 2, "pending": 1, "running": 0, "done": 1, "failed": 0},
}
COMMANDS = (
    ("submit", "http://a.example/"),
    ("submit", "--wait", "http://a.example/"),
    ("status", "x"),
    ("watch", "x"),
    ("results", "x"),
    ("results", "--follow", "x"),
    ("cancel", "x"),
    ("rerun", "x"),
    ("delete", "x"),
    ("list",),
    ("fetch", "http://a.example/"),
)


def answer(body: bytes, status: str = "200 OK", kind: str = "application/json", *more: str) -> bytes:
    """A whole answer."""
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", f"Content-Type: {kind}", *more]
    return "\r\n".join([*head, "", ""]).encode() + body


class Server:
    """Answers every request alike, one after the other."""

    def __init__(self, reply: Callable[[str], bytes]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._reply = reply
        self.asked: list[str] = []
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> "Server":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def _serve(self) -> None:
        while True:
            try:
                stream, _ = self._listener.accept()
            except OSError:
                return
            with stream:
                head = b""
                while b"\r\n\r\n" not in head and (piece := stream.recv(65_536)):
                    head += piece
                self.asked.append(head.split(b"\r\n", 1)[0].decode())
                try:
                    stream.sendall(self._reply(self.asked[-1]))
                    stream.shutdown(socket.SHUT_WR)
                    while stream.recv(65_536):
                        pass
                except OSError:
                    continue


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    monkeypatch.setattr(remote, "seal_process", lambda: None)
    monkeypatch.setenv("SIFT_BATCH_KEY", KEY)
    monkeypatch.delenv("SIFT_BATCH_SERVER", raising=False)


@pytest.fixture
def against(capfd):
    """Run a command against a server with one answer, or with a function of the request's first line."""

    def against(reply: bytes | Callable[[str], bytes], name: str, *args: str) -> Said:
        with Server(reply if callable(reply) else lambda _: reply) as server:
            said = ran(capfd, name, "--server", server.url, *args)
        assert KEY not in said.err
        assert "Traceback" not in said.err
        return said

    return against


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"SSH-2.0-OpenSSH\r\n", id="ssh"),
        pytest.param(answer(b"<html>", kind="text/html"), id="html"),
        pytest.param(answer(b"<html>", "404 Not Found", "text/html"), id="404"),
        pytest.param(answer(b"<html>", "502 Bad Gateway", "text/html"), id="502"),
        pytest.param(answer(b"", "302 Found", "text/html", "Location: http://127.0.0.1:1/"), id="redirect"),
        pytest.param(answer(b'{"id": "x", "status"')[:-3], id="half"),
        pytest.param(answer(b"null"), id="null"),
        pytest.param(answer(b"[]"), id="list"),
        pytest.param(answer(b"{}"), id="object"),
        pytest.param(answer(b'{"items": 1, "content": 2, "meta": 3}'), id="types"),
        pytest.param(answer(b'{"items": [1]}'), id="items"),
        pytest.param(answer(b"{}", "500 X", "application/problem+json"), id="problem"),
    ],
)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_stranger_is_exit_3_and_one_line(against, command, reply):
    """Whatever answers, each command ends with exit 3, one line that says what to do, and no output."""
    said = against(reply, *command)
    assert (said.code, said.out) == (3, "")
    assert said.err.count("\n") == 1
    assert "--server" in said.err


def test_what_a_service_says_can_t_command_a_terminal(against):
    """Texts of a problem and of a job are escaped, in lines and in JSON."""
    evil = "\x1b[2J\u202e\r\n"
    problem = json.dumps(
        {"code": "odd", "detail": evil, "hint": evil, "errors": [{"pointer": evil}]}
    ).encode()
    job = json.dumps({**JOB, "id": evil, "status": evil, "created_at": evil, "rerun_of": evil}).encode()
    for name in ("status", "cancel", "list"):
        said = against(
            answer(problem, "409 X", "application/problem+json"), name, *(["x"] if name != "list" else [])
        )
        assert said.code == 2
        assert not set(evil) - {"\n", "[", "2", "J"} & set(said.err)
    for args, code in (
        (("status", "x"), 0),
        (("status", "--json", "x"), 0),
        (("submit", "http://a.example/"), 3),
    ):
        said = against(answer(job), *args)
        assert said.code == code
        assert not {"\x1b", "\u202e", "\r"} & set(said.out + said.err)


def test_a_problem_that_nobody_knows_is_told_in_its_own_words(against):
    """A code of a newer service comes with its own detail and hint, and when to try again."""
    problem = {"code": "new", "detail": "Nothing today", "hint": "come back", "retry_after": 90}
    said = against(answer(json.dumps(problem).encode(), "429 X", "application/problem+json"), "status", "x")
    assert (said.code, said.err) == (2, "sift-batch: nothing today; come back; try again in 90 s\n")


def test_a_busy_service_is_exit_3(against):
    """What has to do with the service and not with the request is exit 3, with the job that is in the way."""
    problem = json.dumps({"code": "caller_busy", "detail": "You are busy", "job_id": "f" * 32}).encode()
    said = against(answer(problem, "429 X", "application/problem+json"), "submit", "http://a.example/")
    assert said.code == 3
    assert f"one of them is {'f' * 32}; wait for the job that is named, or cancel it" in said.err


def test_a_service_that_gives_fewer_results_than_targets_is_told(against):
    """Lines that are missing from a settled job are no success."""
    settled = {**JOB, "status": "done", "settled": True}
    line = json.dumps({"idx": 0, "url": "u", "status": "done"}).encode() + b"\n"

    def reply(asked: str) -> bytes:
        if "/results" in asked:
            return answer(line, kind="application/jsonl")
        return answer(json.dumps(settled).encode())

    said = against(reply, "results", "x")
    assert said.code == 3
    assert len(said.views) == 1
    assert "fewer results than the job has targets" in said.err


def test_a_list_that_never_ends_ends(against):
    """A service that gives the same page for ever is not asked for ever."""
    page = json.dumps({"items": [JOB], "next_cursor": "again", "settled": False}).encode()
    said = against(answer(page), "list", "--json")
    assert said.code == 0
    assert len(said.json["items"]) == 1

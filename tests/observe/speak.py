"""Say every vector through its channel in a sealed process, with a marker line between them.

Run as a program: `python speak.py VECTORS LOGFILE [MUTANT]`. What comes out on standard output, standard
error and in the log file is read by `test_seal.py`. A mutant breaks one line of the package first.
"""

# ruff: noqa: D101, D103 - channels and mutants are named after what they do

import base64
import json
import logging
import re
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def revive(value: Any) -> Any:
    if isinstance(value, list):
        return [revive(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$b64" in value:
        return base64.b64decode(value["$b64"])
    if "$rep" in value:
        return value["$rep"][0] * value["$rep"][1]
    if "$cat" in value:
        return "".join(revive(item) for item in value["$cat"])
    if "$repr" in value:
        return telling(value["$repr"])
    if "$strsub" in value:
        return LyingText(value["$strsub"])
    return {key: revive(item) for key, item in value.items()}


def telling(text: str) -> object:
    class Telling:
        def __repr__(self) -> str:
            return text

        __str__ = __repr__

    return Telling()


class LyingText(str):
    """Equal to everything, with the hash of something harmless, and shown as that."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("done")

    def __str__(self) -> str:
        return "done"


def raised(payload: Any, kind: str) -> BaseException:
    """Return an error that carries the payload in the way that `kind` names, with a traceback."""
    try:
        raise_as(payload, kind)
    except Exception as error:
        return error
    raise AssertionError(kind)


def raise_as(payload: Any, kind: str) -> None:
    if kind == "message":
        raise ValueError(payload)
    if kind == "note":
        error = ValueError("x")
        error.add_note(payload)
        raise error
    if kind == "group":
        raise ExceptionGroup(payload[0], [ValueError(payload[0]), ExceptionGroup("x", [OSError(payload[1])])])
    if kind == "cause":
        try:
            try:
                raise KeyError(payload)
            except KeyError as error:
                raise ValueError(payload) from error
        except ValueError:
            raise RuntimeError("x") from None
    if kind == "local":
        where = payload  # noqa: F841  a traceback with locals would show it
        raise ValueError("x")
    if kind == "class_name":
        raise type(payload, (Exception,), {})("x")
    if kind == "unicode_error":
        payload.encode("ascii")
    if kind == "bad_str":

        class BadText(Exception):
            def __str__(self) -> str:
                raise ValueError(payload)

            __repr__ = __str__

        raise BadText(payload)
    if kind == "filename":
        try:
            exec(compile("raise ValueError('x')", payload, "exec"), {"__name__": payload})
        except ValueError as error:
            raise FileNotFoundError(2, "x", payload, None, payload) from error


class Finalised:
    def __init__(self, payload: Any) -> None:
        self.payload = payload

    def __del__(self) -> None:
        raise ValueError(self.payload)


def stdlib(payload: Any, kind: str) -> None:
    log = logging.getLogger("speaker")
    if kind == "args":
        log.warning(*payload)
    elif kind == "msg":
        log.warning(payload)
    elif kind == "extra":
        log.warning("x", extra=payload)
    elif kind == "logger_name":
        logging.getLogger(payload).warning("x")
    elif kind == "thread_name":
        thread = threading.Thread(target=log.warning, args=("x",), name=payload)
        thread.start()
        thread.join()
    elif kind == "stack_info":
        scope = {"__name__": payload, "log": log, "where": payload}
        exec(compile("log.warning('x', stack_info=True)", payload, "exec"), scope)
    elif kind.startswith("own_handler"):
        own(payload, kind)


def own(payload: Any, kind: str) -> None:
    log = logging.getLogger("library.error")
    if kind == "own_handler":
        log.warning(*payload)
    elif kind == "own_handler_exc":
        try:
            raise OSError(payload)
        except OSError:
            log.exception("x %s", payload)
    else:
        thread = threading.Thread(target=log.warning, args=("x",), name=payload)
        thread.start()
        thread.join()


def through_structlog(payload: Any, kind: str) -> None:
    import structlog

    log = structlog.get_logger("speaker")
    if kind == "kv":
        fields = {"event": "job.ended", **payload}
        log.info(fields.pop("event"), **fields)
        log.info("request finished", **fields)
    elif kind == "event":
        log.info(payload)
        log.info("request finished", note=payload)
    elif kind == "positional":
        log.info(*payload)
    elif kind == "contextvars":
        with structlog.contextvars.bound_contextvars(**payload):
            log.info("job.settled")
            log.info("request finished")


def say(channel: str, payload: Any) -> None:
    group, _, kind = channel.partition(".")
    if group == "structlog":
        through_structlog(payload, kind)
    elif group == "stdlib":
        stdlib(payload, kind)
    elif group == "exc":
        error = raised(payload, kind)
        for name in ("speaker", "library.error"):
            logging.getLogger(name).error("x", exc_info=error)
        through_structlog({"event": "request failed", "exc_info": error, "why": error}, "kv")
        sys.excepthook(type(error), error, error.__traceback__)
    elif channel == "warning":
        warnings.warn(payload, stacklevel=1)
    elif group == "uncaught":
        uncaught(payload, kind)
    elif channel == "text":
        text(payload)


def uncaught(payload: Any, kind: str) -> None:
    error = raised(payload, "message")
    if kind == "main":
        sys.excepthook(type(error), error, error.__traceback__)
    elif kind == "thread":
        thread = threading.Thread(target=raise_as, args=(payload, "message"), name="plain")
        thread.start()
        thread.join()
    else:
        Finalised(payload)


def text(payload: str) -> None:
    import sift_batch._observe.harmless as harmless

    through_structlog(payload, "event")
    through_structlog({"n": {"a": [payload], payload: 1}}, "kv")
    stdlib(payload, "msg")
    stdlib(["x %s", payload], "args")
    say("exc.message", payload)
    say("exc.note", payload)
    print(ascii(harmless.scrub_text(payload)))


MUTANTS: dict[str, Callable[[Any], None]] = {}


def mutant(function: Callable[[Any], None]) -> Callable[[Any], None]:
    MUTANTS[function.__name__] = function
    return function


@mutant
def no_record_factory(observe: Any) -> None:
    logging.setLogRecordFactory = lambda factory: None


@mutant
def records_keep_the_thread_name(observe: Any) -> None:
    sealed = observe.seal._sealed_record

    def leaky(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = sealed(*args, **kwargs)
        record.threadName = threading.current_thread().name
        return record

    observe.seal._sealed_record = leaky


@mutant
def records_keep_the_error(observe: Any) -> None:
    sealed = observe.seal._sealed_record

    def leaky(
        name: str, level: int, fn: str, lno: int, msg: Any, args: Any, exc_info: Any, *rest: Any, **kw: Any
    ) -> Any:
        record = sealed(name, level, fn, lno, msg, args, exc_info, *rest, **kw)
        record.exc_info = exc_info
        return record

    observe.seal._sealed_record = leaky


@mutant
def records_keep_the_message(observe: Any) -> None:
    sealed = observe.seal._sealed_record

    def leaky(name: str, level: int, fn: str, lno: int, msg: Any, args: Any, *rest: Any, **kw: Any) -> Any:
        record = sealed(name, level, fn, lno, msg, args, *rest, **kw)
        record.msg, record.args = msg, args
        return record

    observe.seal._sealed_record = leaky


@mutant
def logger_names_pass(observe: Any) -> None:
    observe.seal.logger_name = lambda name: name.replace(".", "_")


@mutant
def errors_show_their_text(observe: Any) -> None:
    observe.exceptions._facts = lambda error: [ascii(error.args)]


@mutant
def classes_show_any_name(observe: Any) -> None:
    observe.exceptions.type_name = lambda cls: cls.__name__


@mutant
def frames_show_their_file(observe: Any) -> None:
    observe.exceptions.place = lambda frame, line: f"{frame.f_code.co_filename}:{line}"


@mutant
def main_hook_stays(observe: Any) -> None:
    observe.seal._on_uncaught = sys.__excepthook__


@mutant
def thread_hook_stays(observe: Any) -> None:
    observe.seal._on_uncaught_in_thread = threading.__excepthook__


@mutant
def unraisable_hook_stays(observe: Any) -> None:
    observe.seal._on_unraisable = sys.__unraisablehook__


@mutant
def warnings_are_not_captured(observe: Any) -> None:
    logging.captureWarnings = lambda capture: None


@mutant
def keys_pass(observe: Any) -> None:
    observe.redact.harmless_key = lambda key: True


@mutant
def nested_values_pass(observe: Any) -> None:
    observe.redact._Redaction.mapping = lambda self, value, **options: value


@mutant
def unknown_words_pass(observe: Any) -> None:
    observe.harmless._judge = lambda token: "keep"


@mutant
def a_cut_token_stays(observe: Any) -> None:
    scrub = observe.harmless.scrub_text
    observe.harmless.scrub_text = lambda text: scrub(text[: observe.harmless.SCRUB_LIMIT])


@mutant
def fields_go_unchecked(observe: Any) -> None:
    observe.seal.allow_list = lambda spec, given: {key: ascii(value) for key, value in given.items()}


def main(vectors: str, log_file: str, broken: str = "") -> None:
    from sift_batch._observe import exceptions, harmless, lines, redact, seal

    if broken:
        MUTANTS[broken](SimpleNamespace(exceptions=exceptions, harmless=harmless, redact=redact, seal=seal))
        # The tripwire stands behind all of them; with it, half of these would never be seen.
        lines._ALARM = re.compile("(?!)")

    seal.seal_logging()
    logging.getLogger("speaker").setLevel(logging.DEBUG)
    library = logging.getLogger("library.error")
    stock = logging.Formatter("%(asctime)s %(threadName)s %(name)s %(pathname)s %(funcName)s %(message)s")
    for handler in (
        logging.StreamHandler(),
        logging.FileHandler(log_file),
        logging.StreamHandler(sys.stdout),
    ):
        handler.setFormatter(stock)
        library.addHandler(handler)
    for vector in json.loads(Path(vectors).read_text())["vectors"]:
        for stream in (sys.stdout, sys.stderr):
            stream.write(f"\n=== {vector['id']}\n")
            stream.flush()
        with Path(log_file).open("a") as file:
            file.write(f"\n=== {vector['id']}\n")
        say(vector["channel"], revive(vector["payload"]))
    print(f"\n=== end\ntripwire={lines.tripwire.count} unsealed={len(seal.unsealed_handlers())}")


if __name__ == "__main__":
    main(*sys.argv[1:])

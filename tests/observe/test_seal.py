"""A sealed process tells no target, through whatever channel, and every part of the seal is needed."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import speak
from conftest import VECTORS_FILE, leaks, load_vectors

VECTORS = load_vectors()
SPEAK = Path(__file__).parent / "speak.py"


def spoken(folder: Path, mutant: str = "") -> dict[str, str]:
    """Run `speak.py` and return all that came out, by vector."""
    log_file = folder / "library.log"
    done = subprocess.run(
        [sys.executable, str(SPEAK), str(VECTORS_FILE), str(log_file), mutant],
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    said: dict[str, str] = {}
    for output in (done.stdout, done.stderr, log_file.read_bytes()):
        for part in output.decode("utf-8", "backslashreplace").split("\n=== ")[1:]:
            name, _, text = part.partition("\n")
            said[name] = said.get(name, "") + text
    return said


@pytest.fixture(scope="module")
def sealed_output(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what came out of one sealed process, by vector."""
    return spoken(tmp_path_factory.mktemp("sealed"))


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["id"] for vector in VECTORS])
def test_a_vector_does_not_come_out(vector: dict, sealed_output: dict[str, str]) -> None:
    """Nothing of a target comes out of a sealed process: not to its outputs, nor to a library's log file."""
    assert leaks(vector, sealed_output[vector["id"]]) == []


def test_every_vector_says_something(sealed_output: dict[str, str]) -> None:
    """Each vector's channel leads to at least one line, so that silence is not taken for safety."""
    assert [v["id"] for v in VECTORS if not sealed_output[v["id"]].strip()] == []


def test_tripwire_never_fires(sealed_output: dict[str, str]) -> None:
    """What reaches the tripwire is clean already: it holds no line back in a whole run of the vectors."""
    assert "tripwire=0 unsealed=3" in sealed_output["end"]
    assert not any("log.tripwire" in text for text in sealed_output.values())


@pytest.mark.slow
@pytest.mark.parametrize("mutant", sorted(speak.MUTANTS))
def test_every_part_is_needed(mutant: str, tmp_path: Path) -> None:
    """With any one line of the redaction broken, some vector comes out."""
    said = spoken(tmp_path, mutant)
    assert any(leaks(vector, said[vector["id"]]) for vector in VECTORS)


def run_program(source: str) -> subprocess.CompletedProcess[str]:
    """Run a program of its own."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_dying_program_tells_types_and_places_only() -> None:
    """A sealed program that dies of an error writes one JSON line and exits with 1, as it would have."""
    done = run_program(
        """
        import sift_batch._observe.seal as seal
        seal.seal_logging()
        raise ConnectionError("https://atlas.kestrel.example/")
        """
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert '"event":"uncaught","exc":"ConnectionError at __main__:4"' in done.stderr
    assert "kestrel" not in done.stderr


def test_sealing_twice_changes_nothing() -> None:
    """A second `seal_logging` leaves one handler, and a record comes out once."""
    done = run_program(
        """
        import logging
        from sift_batch._observe.seal import seal_logging, unsealed_handlers
        logging.basicConfig()
        seal_logging(); seal_logging()
        assert len(logging.getLogger().handlers) == 1
        assert unsealed_handlers() == []
        logging.getLogger("any").addHandler(logging.NullHandler())
        assert unsealed_handlers() == []
        logging.getLogger("any").warning("x")
        logging.getLogger("other").addHandler(logging.StreamHandler())
        assert len(unsealed_handlers()) == 1
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("foreign") == 1


def test_a_handler_of_somebody_elses_gets_no_text() -> None:
    """A library's own handler has nothing to show: no message that holds a target, and no argument."""
    done = run_program(
        """
        import logging
        from sift_batch import seal_logging

        seal_logging()
        log = logging.getLogger("library")
        log.addHandler(logging.StreamHandler())
        log.warning("fetching http://intranet.example/secret")
        log.warning("fetching %s", "http://intranet.example/secret")
        """
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == 4
    assert "intranet" not in done.stdout + done.stderr
    assert "secret" not in done.stdout + done.stderr


def test_records_made_elsewhere_say_nothing() -> None:
    """A record that did not come from the sealed factory, or was changed since, comes out as a constant."""
    done = run_program(
        """
        import copy, logging
        from sift_batch._observe.seal import seal_logging
        seal_logging()
        root = logging.getLogger()
        root.handle(logging.LogRecord("kestrel", 30, "kestrel", 1, "kestrel", None, None))
        root.handle(logging.makeLogRecord({"msg": "kestrel", "name": "kestrel"}))
        root.handle(logging.makeLogRecord({"_sift_batch_sealed": "kestrel"}))
        """
    )
    assert done.returncode == 0
    assert done.stderr.count('"event":"foreign"') == 3
    assert "kestrel" not in done.stderr


def test_a_closed_output_is_no_fault() -> None:
    """Logging in a sealed process never raises, not even when standard error is closed or missing."""
    done = run_program(
        """
        import logging, os, sys
        from sift_batch._observe.seal import seal_logging
        seal_logging()
        sys.stderr.close()
        logging.error("x")
        sys.stderr = None
        logging.error("x")
        os.write(1, b"alive")
        """
    )
    assert done.stdout == "alive"


def test_the_engine_speaks_through_the_seal() -> None:
    """In a sealed process the engine's events, and an application's harmless ones, come out whole."""
    done = run_program(
        """
        import structlog
        from sift_batch._observe.log import open_event_log
        from sift_batch._observe.seal import seal_logging
        seal_logging()
        log = open_event_log().bind(job_id="0" * 32, caller_class="restricted")
        log.event("job.ended", outcome="failed", error="timeout", targets=3, failed=2)
        structlog.get_logger().warning("payment settled", order_id=17, queue="eu-billing", seconds=0.5)
        """
    )
    assert done.stdout == ""
    assert (
        '"level":"info","event":"job.ended","job_id":"%s","outcome":"failed","targets":3}' % ("0" * 32)
        in done.stderr
    )
    assert '"order_id":17' in done.stderr
    assert '"event":"payment settled"' in done.stderr
    assert '"level":"warning"' in done.stderr

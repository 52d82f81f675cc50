"""Does `config` say which settings are in force, who said so, and all that is wrong with them?"""

import json
import tomllib
from pathlib import Path

import pytest

from sift_batch.service._settings import load_settings

pytestmark = pytest.mark.real


def settings(run, *args: str, **more: object) -> dict[str, dict]:
    """Return the objects of `config show --json` by their names."""
    done = run("config", "show", "--json", *args, **more)
    assert (done.code, done.err) == (0, "")
    (view,) = done.views
    return {item["name"]: item for item in view["settings"]}


def test_where_each_value_came_from(run, tmp_path) -> None:
    """A flag wins over the environment, that over the file, that over the default; each says so."""
    (tmp_path / "sift.toml").write_text("[engine]\nttl = '2h'\nworkers = 2\n[service]\nport = 81\n")
    environment = {"SIFT_BATCH_ENGINE_WORKERS": "3", "SIFT_BATCH_SERVICE_PORT": "82"}
    found = settings(run, "--config", "sift.toml", "--port", "83", env=environment)
    for name, value, source, place in (
        ("engine.max_bytes", "64MiB", "default", ""),
        ("engine.ttl", "2h", "file", "sift.toml, line 2"),
        ("engine.workers", "3", "environment", "SIFT_BATCH_ENGINE_WORKERS"),
        ("service.port", "83", "flag", "--port"),
    ):
        assert found[name] == {"name": name, "value": value, "source": source, "place": place}
    text = run("config", "show", "--config", "sift.toml").out.decode().splitlines()
    (line,) = (line for line in text if line.startswith("engine.ttl "))
    assert line.split(maxsplit=2) == ["engine.ttl", "2h", "sift.toml, line 2"]
    assert len(text) == len(found)


def test_the_flags_are_those_of_serve(run) -> None:
    """Each flag of `serve` that is a setting is one of `config show` and `check`, with the same help."""
    from sift_batch.cli.config_flags import command as config
    from sift_batch.cli.serve_flags import command as serve

    wanted = {item.name: item.to_info_dict() for item in serve.params}
    for name in ("show", "check"):
        found = {item.name: item.to_info_dict() for item in config.commands[name].params}
        assert {key: found[key] for key in wanted} == wanted
    found = settings(run, "--allow", "10.0.0.0/8", "--allow", ".corp", "--server-name", "a", "--ports", "any")
    assert found["fetch.allow"]["value"] == "10.0.0.0/8"
    assert found["fetch.allow_names"]["value"] == ".corp"
    assert found["fetch.ports"]["value"] == "any"
    assert found["service.server_name"]["place"] == "--server-name"


def test_no_secret_is_shown(run, tmp_path) -> None:
    """A password or a token in the archive's URL, and the key of the command line, are in no output."""
    url = "https://me:hunter2@archive.example/{url}?token=opensesame&u={url}"
    environment = {"SIFT_BATCH_FETCH_ARCHIVE": url, "SIFT_BATCH_KEY": "siftb_" + "A" * 52}
    for more in ((), ("--json",), ("--toml",)):
        done = run("config", "show", *more, env=environment)
        assert done.code == 0
        said = done.out.decode() + done.err
        for secret in ("hunter2", "opensesame", "siftb_"):
            assert secret not in said
    assert (
        "https://***@archive.example/{url}?token=***&u={url}"
        in run("config", "show", env=environment).out.decode()
    )
    bad = run("config", "check", env={"SIFT_BATCH_ENGINE_TTL": "hunter2", "SIFT_BATCH_opensesame": "x"})
    assert "hunter2" not in bad.err


def test_a_settings_file(run, tmp_path) -> None:
    """What --toml writes is a file with what was given; with all its lines it is what is in force."""
    environment = {
        "SIFT_BATCH_ENGINE_TTL": "90s",
        "SIFT_BATCH_FETCH_ALLOW": "10.0.0.0/8,fd00::/8",
        "SIFT_BATCH_FETCH_PORTS": "any",
        "SIFT_BATCH_FETCH_USER_AGENT": 'me "quoted" \\ there',
        "SIFT_BATCH_FETCH_ROBOTS": "true",
    }
    text = run("config", "show", "--toml", env=environment).out.decode()
    tables = tomllib.loads(text)
    assert tables["engine"] == {"ttl": "90s"}
    assert tables["gate"] == tables["service"] == {}
    assert set(tables["fetch"]) == {"allow", "ports", "user_agent", "robots"}
    some = tmp_path / "some.toml"
    some.write_text(text)
    every = tmp_path / "every.toml"
    every.write_text(
        "\n".join(line.removeprefix("# ") if " = " in line else line for line in text.split("\n"))
    )
    wanted = load_settings(None, environment)
    for path in (some, every):
        found = load_settings(path)
        assert [row.value for row in found.rows()] == [row.value for row in wanted.rows()]
    assert {origin.source for origin in load_settings(every).origins.values()} == {"file"}


def test_two_forms_at_once(run) -> None:
    """--toml and --json together are a usage error."""
    done = run("config", "show", "--toml", "--json")
    assert (done.code, done.out) == (2, b"")


def test_everything_wrong_is_named(run, tmp_path) -> None:
    """Every bad setting is a line of its own, with its place, and no value; exit 2."""
    (tmp_path / "bad.toml").write_text("[engine]\ntll = 1\nworkers = 'opensesame'\n[gates]\ntotal = 1\n")
    environment = {"SIFT_BATCH_SERVICE_PORT": "99999", "SIFT_BATCH_GATE_TOTEL": "1"}
    for command in ("check", "show"):
        done = run("config", command, "--config", "bad.toml", env=environment)
        assert (done.code, done.out) == (2, b"")
        lines = done.err.splitlines()
        assert len(lines) == 5
        assert "opensesame" not in done.err
        assert "99999" not in done.err
        for words in (
            "line 2",
            "did you mean engine.ttl?",
            "line 3",
            "line 4",
            "SERVICE_PORT",
            "GATE_TOTAL?",
        ):
            assert any(words in line for line in lines), words
    done = run("config", "check", "--config", "bad.toml", "--json", env=environment)
    assert [set(json.loads(line)) for line in done.err.splitlines()] == [{"error", "place"}] * 5


def test_settings_that_can_be_used(run) -> None:
    """With nothing wrong there is nothing on standard output, and exit 0."""
    done = run("config", "check", env={"SIFT_BATCH_ENGINE_TTL": "1h"})
    assert (done.code, done.out) == (0, b"")
    assert "1 of them given" in done.err
    assert run("config", "check", "-q").err == ""


def test_settings_that_can_be_used_as_json(run) -> None:
    """With --json standard output has one object: how many settings there are, and how many were given."""
    done = run("config", "check", "--json", env={"SIFT_BATCH_ENGINE_TTL": "1h"})
    assert (done.code, done.err) == (0, "")
    shown = json.loads(run("config", "show", "--json").out)["settings"]
    assert json.loads(done.out) == {"settings": len(shown), "given": 1}


def test_files_that_settings_name(run, tmp_path) -> None:
    """A callers file, certificates or a folder that can't be used are named before the service meets them."""
    (tmp_path / "file").write_text("text")
    (tmp_path / "callers.toml").write_text("[[caller]]\nname = 1\n")
    (tmp_path / "callers.toml").chmod(0o600)
    done = run("config", "check", "--callers", "callers.toml", "--ca-file", "file", "--data", "file")
    assert done.code == 2
    lines = done.err.splitlines()
    assert [line.split(": ")[1:3] for line in lines] == [
        ["--callers", "service.callers"],
        ["--ca-file", "fetch.ca_file"],
        ["--data", "service.data"],
    ]
    assert "line 1" in lines[0]
    entry = run("key", "new", "alice").out
    (tmp_path / "callers.toml").write_bytes(entry)
    assert run("config", "check", "--callers", "callers.toml", "--data", "new").code == 0


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[engine", b"engine = 1", b"[engine.ttl]\nx = 1"])
def test_odd_files(run, tmp_path, content: bytes) -> None:
    """An odd settings file is refused in lines of our own, or is no settings at all."""
    Path(tmp_path / "odd.toml").write_bytes(content)
    done = run("config", "check", "--config", "odd.toml")
    assert done.code == (2 if content else 0)
    assert "Traceback" not in done.err
    assert done.err.count("\n") == 1


def test_a_settings_file_that_is_not_there(run) -> None:
    """It is told with its name, the reason, and the flag that named it."""
    for name in ("check", "show"):
        done = run("config", name, "--config", "nofile")
        said = "sift-batch: nofile: this file can't be read (No such file or directory); check --config\n"
        assert (done.code, done.err) == (2, said)


def test_nobody_reads_the_settings(run, tmp_path) -> None:
    """A full disk behind standard output is one line and exit 3."""
    import subprocess
    import sys

    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "sift_batch", "config", "show"],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert done.returncode == 3
    assert done.stderr.count(b"\n") == 1

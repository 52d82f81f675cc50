"""What may this command fetch, and is every target one that can be fetched?

The flags that become the pipeline's settings, and the look at all jq programs before the first page is
asked for. Next: `targets`, which checks everything else line by line.
"""

from collections.abc import Sequence
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from .._model.values import Target
from ..fetch import FetchConfig, FetchError, check_target, open_fetcher
from ..fetch._extra import require_extra
from ..fetch._fetcher import check_authorities
from ..fetch._guard import PORT_HINT
from .hints import hint_with_flag
from .plan import Refused
from .targets import Complain, Targets, reason_of

if TYPE_CHECKING:
    from ..fetch._fetcher import Fetcher

# Usually there is one; a file with one of its own on each of a million lines must not fill the memory.
_PROGRAMS_REMEMBERED: Final = 1_000


def fetch_config(allow: Sequence[str], ports: str | None, ca_file: Path | None) -> FetchConfig:
    """Return the settings that the flags ask for.

    Raises `Refused`, naming the flag, and `ImportError` when nothing can be fetched here at all.
    """
    require_extra()
    networks = [text for text in allow if _is_network(text)]
    names = [text for text in allow if text not in networks]
    numbers = FetchConfig().ports if ports is None else _ports(ports)
    if ca_file is not None:
        _check_authorities(ca_file)
    try:
        return FetchConfig(
            allow=networks,
            allow_names=names,
            ports=numbers,
            ca_file=None if ca_file is None else str(ca_file),
        )
    except ValueError:
        # The values are not quoted: a name that is allowed is a name that is in use somewhere.
        raise Refused(
            "--allow takes a network (10.0.0.0/8), a name (wiki.corp) or a suffix (.corp)", 2
        ) from None


def check_here(target: Target, config: FetchConfig) -> None:
    """Raise `FetchError` for a target that can't be fetched as it is, as `check_target` does.

    Where the port is refused and so would the server be, the hint names both flags, not one after the other.
    """
    try:
        check_target(target, config)
    except FetchError as error:
        if error.hint != PORT_HINT:
            raise
        further = _hint_beyond_port(target, config)
        raise FetchError(
            error.code,
            error.message,
            hint=f"{hint_with_flag(error.hint)}; {further}" if further else error.hint,
            reason=error.reason,
        ) from None


def _hint_beyond_port(target: Target, config: FetchConfig) -> str:
    try:
        check_target(target, replace(config, ports=None))
    except FetchError as error:
        return hint_with_flag(error.hint)
    return ""


def _check_authorities(path: Path) -> None:
    if not path.is_file():
        raise Refused("--ca-file is no file; give it certificates in PEM form", 2)
    try:
        check_authorities(path)
    except ValueError:
        raise Refused("--ca-file can't be loaded; give it certificates in PEM form", 2) from None


def _is_network(text: str) -> bool:
    try:
        ip_network(text)
    except ValueError:
        if "/" in text or ":" in text:
            raise Refused("--allow: this is no network; write it as 10.0.0.0/8 or fd00::/8", 2) from None
        if not text.strip(".0123456789") and text:
            # No host has a name of digits alone: it is an address that was mistyped.
            raise Refused("--allow: this is no IPv4 address; write it as 10.0.0.1 or 10.0.0.0/8", 2) from None
        return False
    return True


def _ports(text: str) -> frozenset[int] | None:
    if text == "any":
        return None
    parts = text.split(",")
    if not all(
        part.isascii() and part.isdigit() and len(part) <= 5 and 0 < int(part) <= 65_535 for part in parts
    ):
        raise Refused('--ports takes "any", or numbers between 1 and 65,535 as in 80,443,8080', 2)
    return frozenset(int(part) for part in parts)


def check_programs(targets: Targets, config: FetchConfig, complain: Complain) -> int:
    """Compile the jq programs of all targets in a worker; return how many targets have a bad one.

    Raises `Refused` when they can't be checked at all, which is no line's fault.
    """
    return trio.run(_check_programs, targets, config, complain) if targets.has_programs else 0


async def _check_programs(targets: Targets, config: FetchConfig, complain: Complain) -> int:
    verdicts: dict[str, str] = {}
    bad = 0
    async with open_fetcher(config) as fetch:
        for item in targets:
            program = item.target.options.jq
            if not program:
                continue
            if program not in verdicts:
                if len(verdicts) >= _PROGRAMS_REMEMBERED:
                    verdicts.clear()
                verdicts[program] = await _verdict(fetch, item.target)
            if verdicts[program]:
                bad += 1
                place = ("argument", item.idx + 1) if item.line is None else ("line", item.line)
                complain(*place, verdicts[program])
    return bad


async def _verdict(fetch: "Fetcher", target: Target) -> str:
    try:
        await fetch.check(target)
    except FetchError as error:
        if error.code == "bad_option":
            return reason_of(error)
        advice = "see that this machine has memory and processes to spare, and try again"
        raise Refused(f"the jq programs can't be checked: {error.message}; {advice}", 3) from None
    return ""

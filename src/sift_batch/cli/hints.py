"""What does a person at the command line do about a target that may not be fetched?

The fetch names the setting that an application's operator would know; here its flag stands in for it.
"""

from types import MappingProxyType
from typing import Final

from ..fetch._guard import LOCALHOST_HINT, NAME_HINT, NETWORK_HINT, PORT_HINT

_FLAGS: Final = MappingProxyType(
    {
        PORT_HINT: "--ports admits others, as in --ports 80,443,8080",
        NETWORK_HINT: "--allow admits its network, as in --allow 10.0.0.0/8",
        NAME_HINT: "--allow admits it with its network, as in --allow .corp --allow 10.0.0.0/8",
        LOCALHOST_HINT: "localhost stands for 127.0.0.1 and ::1: --allow both, as 127.0.0.0/8 and ::1/128",
    }
)


def hint_with_flag(hint: str) -> str:
    """Return a hint of the fetch, with the flag that does what an operator would be asked for."""
    return _FLAGS.get(hint, hint)

"""Which service is meant, and how is it told who asks? What the flags say, and the key.

Nothing is called here. Next: `remote`, which talks to it.
"""

import os
import re
from pathlib import Path
from typing import Final

from .plan import Refused
from .remote_flags import Remote

KEY_VARIABLE: Final = "SIFT_BATCH_KEY"
_KEY: Final = re.compile(r"[A-Za-z0-9_-]{16,256}", re.ASCII)
_LONGEST: Final = 4_096
_GIVE_ONE: Final = f"give a key with --key-file or {KEY_VARIABLE}"


def server_of(remote: Remote) -> str:
    """Return the address of the service. Raises `Refused` if none is named."""
    if not remote.server:
        raise Refused("no service is named; give --server URL, or set SIFT_BATCH_SERVER", 2)
    return remote.server


def key_of(remote: Remote) -> str:
    """Return the key to send: that of the file, else that of the environment. Raises `Refused`."""
    if remote.key_file is not None:
        text, source = _read(remote.key_file), "--key-file"
    else:
        text, source = os.environ.get(KEY_VARIABLE, ""), KEY_VARIABLE
    key = text.removesuffix("\n").removesuffix("\r")
    if not key:
        raise Refused(f"no key is given; {_GIVE_ONE}", 3)
    if not _KEY.fullmatch(key):
        raise Refused(f"{source} is not a whole key; it is one line, as `sift-batch key new` printed it", 3)
    return key


def _read(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(_LONGEST).decode("ascii", "replace")
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "unknown reason"
        raise Refused(f"--key-file can't be read ({reason}); {_GIVE_ONE}", 2) from None
    except ValueError:
        raise Refused("--key-file is no path", 2) from None

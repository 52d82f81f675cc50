"""What does `sift-batch completion` do? It prints the script that click has for a shell.

The script runs `sift-batch` with a variable set whenever Tab is pressed; click then prints what could
follow, before any command begins.
"""

import json
from typing import Final

from click.shell_completion import get_completion_class

from .commands import cli
from .plan import Refused
from .process import seal_process
from .screen import PROGRAM, Screen
from .standard_output import write_out

_VARIABLE: Final = "_SIFT_BATCH_COMPLETE"
"""What click looks for, by the name of the program."""


def completion_command(shell: str, *, quiet: bool, as_json: bool) -> int:
    """Run the command and return its exit code."""
    seal_process()
    found = get_completion_class(shell)
    assert found is not None
    completer = found(cli, {}, PROGRAM, _VARIABLE)
    # Not `source()`: for bash it starts one, to complain of versions that nobody has any more.
    script = completer.source_template % completer.source_vars()
    try:
        write_out(json.dumps({"shell": shell, "script": script}) + "\n" if as_json else script)
    except Refused as refused:
        Screen(quiet=quiet, as_json=as_json).error(refused.reason)
        return refused.exit_code
    return 0

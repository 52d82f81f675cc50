"""Where may a test end the process, as a kill or a power cut would?

`crash_point` marks a moment between two things that a crash must not be able to part: a row and the rows
that belong to it, a commit and its acknowledgement, a file and its name. It does nothing, and costs next
to nothing, unless a test has set a hook in its own process (`on_crash_point`); nothing else sets one, and
no environment variable is read. The names are a closed set: each stands once in the source, and a test
fails when one has no crash test (tests/proof/crash/).
"""

from collections.abc import Callable

# Set by tests only, and in the process that is to die. Called with the name of each point passed.
_hook: Callable[[str], None] | None = None


def crash_point(name: str) -> None:
    """Let a test end the process here. `name` says what has just happened and is a literal."""
    if _hook is not None:
        _hook(name)


def on_crash_point(hook: Callable[[str], None] | None) -> None:
    """Call `hook` at each crash point from now on; None: at none. For tests."""
    global _hook
    _hook = hook

"""Start a program in the sandbox that a systemd unit asks for, without systemd.

    python unit_sandbox.py UNIT WRITABLE UID PROGRAM [ARGUMENT ...]

What systemd would do to the process itself is done from the unit's own lines: system call filters, limits,
mask, no new privileges; and, for root where the system lets it, another user and a file system that can be
written in the folder WRITABLE alone. Not done: users, devices and /proc of its own, memory and tasks.
"""

import ctypes
import errno
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NE, _EQ, _GT, _MASKED = 1, 4, 6, 7
_NAMESPACES = {
    "cgroup": 0x02000000,
    "ipc": 0x08000000,
    "net": 0x40000000,
    "mnt": 0x00020000,
    "pid": 0x20000000,
    "user": 0x10000000,
    "uts": 0x04000000,
}
_FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
_LAST_FAMILY = 45
_WRITE_AND_RUN, _RUN, _SHARED_RUN = 6, 4, 0o100000
_REAL_TIME = (1, 2, 6)
_SET_ID = (0o4000, 0o2000)
_MODES = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "mkdir": 1, "mkdirat": 2}
_NO_NEW_PRIVS = 38
_NEW_MOUNTS, _RECURSIVE, _PRIVATE = 0x00020000, 0x4000, 0x40000


class Unit:
    """The [Service] section of a unit."""

    def __init__(self, path: Path) -> None:
        lines = path.read_text("utf-8").partition("[Service]\n")[2].partition("\n[")[0].splitlines()
        self._lines = [line.split("=", 1) for line in lines if "=" in line and not line.startswith("#")]

    def all(self, name: str) -> list[str]:
        """Every value of a directive."""
        return [value for key, value in self._lines if key == name]

    def one(self, name: str) -> str:
        """The value of a directive that stands there once."""
        (value,) = self.all(name)
        return value

    def words(self, name: str) -> list[str]:
        """The words of a directive that stands there once."""
        return self.one(name).split()


class _Compared(ctypes.Structure):
    _fields_ = [
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("first", ctypes.c_uint64),
        ("second", ctypes.c_uint64),
    ]


class Filter:
    """A system call filter of the kernel, by libseccomp."""

    def __init__(self, default: int) -> None:
        self._library = ctypes.CDLL("libseccomp.so.2")
        self._library.seccomp_init.restype = ctypes.c_void_p
        self._context = ctypes.c_void_p(self._library.seccomp_init(ctypes.c_uint32(default)))

    def rule(self, action: int, call: str, *compared: tuple[int, int, int, int]) -> None:
        """Add a rule; a call that this machine does not have is left out."""
        number = self._library.seccomp_syscall_resolve_name(call.encode())
        if number < 0:
            return
        array = (_Compared * len(compared))(*(_Compared(*item) for item in compared))
        given = (ctypes.c_uint32(action), number, len(compared), array)
        if self._library.seccomp_rule_add_array(self._context, *given) < 0:
            raise OSError(f"no rule can be made for {call}")

    def load(self) -> None:
        """Put the filter on this process, for ever."""
        if self._library.seccomp_load(self._context) != 0:
            raise OSError("the filter can't be loaded")


def calls(names: Sequence[str]) -> Iterator[str]:
    """Give the system calls of the sets and names in a SystemCallFilter, as systemd has them."""
    sets: dict[str, list[str]] = {}
    shown = subprocess.run(["systemd-analyze", "syscall-filter"], capture_output=True, text=True, check=True)
    current: list[str] = []
    for line in shown.stdout.splitlines():
        if line.startswith("@"):
            current = sets.setdefault(line.strip(), [])
        elif line.startswith("    ") and not line.strip().startswith("#"):
            current.append(line.strip())
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name.startswith("@"):
            waiting += sets[name]
        else:
            yield name


def restrictions(unit: Unit) -> Filter:
    """Make the filter of everything that the unit forbids."""
    denied = Filter(_ALLOW)
    refuse = _ERRNO | errno.EPERM
    kept = sum(_NAMESPACES[name] for name in unit.words("RestrictNamespaces"))
    for flag in _NAMESPACES.values():
        if not kept & flag:
            for call, place in (("unshare", 0), ("clone", 0), ("setns", 1)):
                denied.rule(refuse, call, (place, _MASKED, flag, flag))
    denied.rule(refuse, "setns", (1, _EQ, 0, 0))
    denied.rule(_ERRNO | errno.ENOSYS, "clone3")
    families = {_FAMILIES[name] for name in unit.words("RestrictAddressFamilies")}
    unsupported = _ERRNO | errno.EAFNOSUPPORT
    for family in set(range(_LAST_FAMILY + 1)) - families:
        denied.rule(unsupported, "socket", (0, _EQ, family, 0))
    denied.rule(unsupported, "socket", (0, _GT, _LAST_FAMILY, 0))
    if unit.one("MemoryDenyWriteExecute") == "yes":
        denied.rule(refuse, "mmap", (2, _MASKED, _WRITE_AND_RUN, _WRITE_AND_RUN))
        denied.rule(refuse, "mprotect", (2, _MASKED, _RUN, _RUN))
        denied.rule(refuse, "pkey_mprotect", (2, _MASKED, _RUN, _RUN))
        denied.rule(refuse, "shmat", (2, _MASKED, _SHARED_RUN, _SHARED_RUN))
    if unit.one("RestrictRealtime") == "yes":
        for policy in _REAL_TIME:
            denied.rule(refuse, "sched_setscheduler", (1, _EQ, policy, 0))
    if unit.one("RestrictSUIDSGID") == "yes":
        for call, place in _MODES.items():
            for bit in _SET_ID:
                denied.rule(refuse, call, (place, _MASKED, bit, bit))
    if unit.one("LockPersonality") == "yes":
        denied.rule(refuse, "personality", (0, _NE, 0, 0))
    return denied


def allowed(unit: Unit) -> Filter:
    """Make the filter of everything that the unit allows."""
    only = Filter(_ERRNO | getattr(errno, unit.one("SystemCallErrorNumber")))
    for name in calls(unit.words("SystemCallFilter")):
        only.rule(_ALLOW, name)
    return only


def own_mounts() -> bool:
    """Go into a mount namespace of its own; False where this process may not."""
    libc = ctypes.CDLL(None, use_errno=True)
    return not libc.unshare(_NEW_MOUNTS) and not libc.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None)


def mount(*arguments: str) -> None:
    """Run `mount`."""
    subprocess.run(["mount", *arguments], check=True)


def needed() -> set[str]:
    """The folders of the interpreter, of its libraries and of the package."""
    package = find_spec("sift_batch")
    assert package is not None
    assert package.origin is not None
    return {os.path.realpath(path) for path in (sys.base_prefix, sys.prefix, Path(package.origin).parents[1])}


def open_to_all(writable: str) -> None:
    """Let another user reach what is needed where it is in a closed folder, as root's own is.

    In the closed folder's place comes an open one that holds what is needed and nothing else.
    """
    stage = f"{writable}/stage"
    Path(stage).mkdir()
    for path in sorted(needed()):
        parents = [str(parent) for parent in reversed(Path(path).parents)]
        closed = next((parent for parent in parents if not Path(parent).stat().st_mode & 1), None)
        if closed is None:
            continue
        mount("--bind", closed, stage)
        mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", closed)
        for inside in needed():
            if inside.startswith(closed + "/"):
                Path(inside).mkdir(parents=True)
                mount("--bind", stage + inside.removeprefix(closed), inside)
        subprocess.run(["umount", "--lazy", stage], check=True)


def read_only(writable: str) -> None:
    """Make the whole file system read only, but for one folder and the kernel's own."""
    mount("--bind", writable, writable)
    lines = Path("/proc/self/mountinfo").read_text("utf-8").splitlines()
    for place in {line.split()[4] for line in lines}:
        if place != writable and not place.startswith(("/proc", "/sys", "/dev")):
            mount("--options", "remount,bind,ro", place)


def main(unit_path: str, writable: str, uid: str, *command: str) -> None:
    """Put everything on, then become the program."""
    unit = Unit(Path(unit_path))
    filters = [restrictions(unit), allowed(unit)]
    for name in ("NOFILE", "CORE"):
        limit = int(unit.one(f"Limit{name}"))
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (limit, limit))
    if os.geteuid() == 0 and own_mounts():
        open_to_all(writable)
        read_only(writable)
        os.chown(writable, int(uid), int(uid))
        os.setgroups([])
        os.setresgid(int(uid), int(uid), int(uid))
        os.setresuid(int(uid), int(uid), int(uid))
    os.umask(int(unit.one("UMask"), 8))
    ctypes.CDLL(None).prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
    for each in filters:
        each.load()
    os.chdir(writable)
    os.execve(command[0], command, {"LANG": "C.UTF-8", "PATH": "/usr/bin:/bin", "TMPDIR": writable})


if __name__ == "__main__":
    main(*sys.argv[1:])

"""How do results get into README.md? By command, into marked sections, never by hand.

A section stands between `<!-- results: NAME -->` and `<!-- end: NAME -->`; what is between them is
replaced whole. With the table go the machine, the versions and the command that measured it.
"""

import re
from pathlib import Path

import measure

README = Path(__file__).with_name("README.md")


def heading() -> str:
    """Return when, where and by which command something was measured, as a paragraph."""
    return f"`{measure.command()}`, {measure.today()}:\n\n" + "\n".join(
        f"- {line}" for line in measure.machine().splitlines()
    )


def write(name: str, text: str, *, file: Path = README) -> None:
    """Replace the section `name` of the file. Raises `LookupError` if there is no such section."""
    mark, end = f"<!-- results: {name} -->", f"<!-- end: {name} -->"
    before = file.read_text()
    section = re.compile(f"{re.escape(mark)}.*?{re.escape(end)}", re.DOTALL)
    after, found = section.subn(lambda _: f"{mark}\n\n{text.strip()}\n\n{end}", before)
    if found != 1:
        raise LookupError(f"{file.name} has {found} sections {name!r}, not one")
    file.write_text(after)

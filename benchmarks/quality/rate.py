"""How well is the main content of a page read, here and by others? Scores on pages whose truth is known.

    python benchmarks/quality/rate.py                     # the tables
    python benchmarks/quality/rate.py --write             # also into benchmarks/README.md
    python benchmarks/quality/rate.py --show article_news # one page: what was missed, what came along
    python benchmarks/quality/rate.py --pages             # every page with the score of every reader

The pages and their truth are in `pages.py`, `made/`, `unseen/` and `real.json`, the scores in `scoring.py`,
the readers with their settings in `readers.py`. Real pages that are not installed are left out, and said to
be: on Debian `apt-get install python3.11-doc debian-reference-en debian-policy sqlite3-doc valgrind
libffi-dev libxslt1-dev` brings them. Nothing is random: the same versions give the same numbers.
"""

import argparse
import difflib
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))

import measure
import pages as corpus
import readers
import readme
from pages import Page
from readers import Read, Reader
from scoring import CHECKS, Score, mean, score

Scores = Mapping[Reader, Mapping[Page, Score]]

SHARES = ("recall", "precision", "f1", "leak", "structure", *CHECKS)


def rate(pages: Sequence[Page], made: Mapping[Reader, Read]) -> Scores:
    """Let every reader read every page. A reader that fails on a page has read nothing of it."""
    rated: dict[Reader, dict[Page, Score]] = {}
    for reader, read in made.items():
        rated[reader] = {}
        for page in pages:
            try:
                reading = read(page.source, page.url)
            except Exception as error:
                print(f"{reader.name} fails on {page.name}: {type(error).__name__}", file=sys.stderr)
                reading = ""
            rated[reader][page] = score(reading, page.truth)
    return rated


def overall(rated: Scores) -> str:
    """Return a table of each reader's mean over all kinds of page, each kind counting the same."""
    lines = [
        f"| reader | {' | '.join(name for name in SHARES)} |",
        f"|---|{'---|' * len(SHARES)}",
    ]
    for reader, scores in rated.items():
        kinds = _by_kind(list(scores))
        means = [
            mean(mean(getattr(scores[page], share) for page in those) for those in kinds.values())
            for share in SHARES
        ]
        lines.append(f"| {reader.name} | {' | '.join(map(_cell, means))} |")
    return "\n".join(lines)


def by_kind(rated: Scores, share: str) -> str:
    """Return a table of one number: a row for each kind of page, a column for each reader."""
    first = next(iter(rated.values()))
    lines = [
        f"| kind | pages | {' | '.join(reader.name for reader in rated)} |",
        f"|---|---|{'---|' * len(rated)}",
    ]
    for kind, those in _by_kind(list(first)).items():
        cells = [_cell(mean(getattr(scores[page], share) for page in those)) for scores in rated.values()]
        lines.append(f"| {kind} | {len(those)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def by_page(rated: Scores) -> str:
    """Return a table of all pages: recall, precision and structure of every reader."""
    first = next(iter(rated.values()))
    lines = [f"| page | {' | '.join(reader.name for reader in rated)} |", f"|---|{'---|' * len(rated)}"]
    for page in first:
        found = (scores[page] for scores in rated.values())
        cells = (f"{_cell(one.recall)} {_cell(one.precision)} {_cell(one.structure)}" for one in found)
        lines.append(f"| {page.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def ratio(rated: Scores, share: str) -> str:
    """Return this project's number over the best of the others', as a line."""
    ours = _mean_of(rated, readers.OURS, share)
    best = max(
        (reader for reader in readers.PEERS if reader in rated), key=lambda one: _mean_of(rated, one, share)
    )
    theirs = _mean_of(rated, best, share)
    return f"{share}: {ours / theirs:.3f} x the best of the others ({best.name}, {theirs:.3f})"


def _mean_of(rated: Scores, reader: Reader, share: str) -> float:
    scores = rated[reader]
    kinds = _by_kind(list(scores)).values()
    return mean(mean(getattr(scores[page], share) for page in those) for those in kinds) or 0.0


def _by_kind(pages: Sequence[Page]) -> Mapping[str, Sequence[Page]]:
    kinds: dict[str, list[Page]] = defaultdict(list)
    for page in pages:
        kinds[page.kind].append(page)
    return dict(sorted(kinds.items()))


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def show(page: Page, reading: str) -> str:
    """Return what a reading has of a page, beside the truth: "-" was missed, "+" came along or is changed."""
    wanted = [line for block in page.truth.main for line in block.text.splitlines() if line.strip()]
    given = [line for line in reading.splitlines() if line.strip()]
    lines = difflib.unified_diff(wanted, given, "truth", "reading", n=0, lineterm="")
    return "\n".join([f"{page.name}: {score(reading, page.truth)}", *lines])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the tables into benchmarks/README.md")
    parser.add_argument("--pages", action="store_true", help="every page by itself")
    parser.add_argument("--show", metavar="PAGE", help="one page's reading beside its truth")
    parser.add_argument("--reader", default=readers.OURS.name, help="whose reading to show")
    parser.add_argument(
        "--made", action="store_true", help="only the pages that were written for the purpose"
    )
    return parser.parse_args()


def main() -> None:
    arguments = _arguments()
    real, skipped = ([], []) if arguments.made else corpus.real()
    pages, unseen = [*corpus.made(), *real], corpus.made(corpus.UNSEEN)
    made, missing = readers.installed()
    if arguments.show:
        (read,) = (read for reader, read in made.items() if reader.name == arguments.reader)
        (page,) = (page for page in [*pages, *unseen] if page.name == arguments.show)
        print(show(page, read(page.source, page.url)))
        return
    rated, rated_unseen = rate(pages, made), rate(unseen, made)
    text = report(rated, rated_unseen, [*skipped, *missing])
    print(measure.machine(), f"command: {measure.command()}", "", text, sep="\n")
    if arguments.pages:
        print("", by_page(rated), "", by_page(rated_unseen), sep="\n")
    if arguments.write:
        readme.write("quality", f"{readme.heading()}\n\n{text}")


def report(rated: Scores, unseen: Scores, left_out: Sequence[str]) -> str:
    """Return all tables as one text."""
    parts = [
        "\n".join(f"- {reader.name}: {reader.versions}; {reader.settings}" for reader in rated),
        "\n".join(f"- left out: {reason}" for reason in left_out) or "Nothing was left out.",
    ]
    for title, scores in (("All pages but the unseen ones", rated), ("The unseen pages", unseen)):
        if any(scores.values()):
            parts += [f"**{title}**: {_size(scores)}", overall(scores), _ratios(scores)]
    parts += [f"**{name} by kind of page**\n\n{by_kind(rated, name.lower())}" for name in ("F1", "Structure")]
    return "\n\n".join(parts)


def _size(rated: Scores) -> str:
    pages = list(next(iter(rated.values())))
    size = sum(len(page.source.encode()) for page in pages) / 2**10
    return f"{len(pages)} of {len(_by_kind(pages))} kinds, {size:.0f} KiB."


def _ratios(rated: Scores) -> str:
    if readers.OURS not in rated:
        return ""
    return "\n".join(f"- {ratio(rated, share)}" for share in ("f1", "recall", "precision", "structure"))


if __name__ == "__main__":
    main()

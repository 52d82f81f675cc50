"""Does the suite for stores pass what keeps the rules, and catch what breaks one?"""

from itertools import count
from pathlib import Path

import pytest
from breakages import BREAKAGES, Breakage, apply

from sift_batch import open_store
from sift_batch.testing import STORE_RULES, check_store
from sift_batch.testing._ledger import OWNER, T0, Ledger
from sift_batch.testing._rules import Rule


async def test_the_store_in_memory_passes() -> None:
    """The private store keeps every rule."""
    await check_store(lambda: open_store(":memory:"))


@pytest.mark.real
@pytest.mark.parametrize("durability", ["full", "normal"])
async def test_the_store_in_a_file_passes(tmp_path: Path, durability: str) -> None:
    """A store in a file keeps every rule, with its threads and on the real clock."""
    paths = (tmp_path / f"{n}.sift" for n in count())
    await check_store(lambda: open_store(next(paths), durability=durability))  # type: ignore[arg-type]


@pytest.mark.parametrize("breakage", BREAKAGES, ids=lambda breakage: breakage.old[:40])
async def test_a_broken_store_is_caught(breakage: Breakage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that breaks a rule fails that rule of the suite."""
    rules = [rule for rule in STORE_RULES if breakage.rule in rule.text]
    assert rules, f"there is no such rule: {breakage.rule}"
    apply(breakage, monkeypatch)
    assert any([await _is_broken(rule) for rule in rules])


async def test_the_suite_names_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite fails at the first rule that is broken, and its text names the rule."""
    apply(BREAKAGES[0], monkeypatch)
    with pytest.raises(AssertionError, match=r"^broken rule: Twenty equal submits at once store one job"):
        await check_store(lambda: open_store(":memory:"))


async def _is_broken(rule: Rule[Ledger]) -> bool:
    async with open_store(":memory:") as store:
        await store.acquire(OWNER, now=T0)
        try:
            await rule.run(Ledger(store))
        except AssertionError as exc:
            return rule.text in str(exc)
        return False


def test_each_rule_is_a_sentence_of_its_own() -> None:
    """The rules can be shown as a list: sentences, no two the same."""
    texts = [rule.text for rule in STORE_RULES]
    assert len(set(texts)) == len(texts)
    for text in texts:
        assert text[0].isupper()
        assert text.endswith(".")

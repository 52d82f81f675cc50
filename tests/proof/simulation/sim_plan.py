"""What is going to happen? A whole story, made from one seed before it begins, as plain data.

A plan says who does what and when, how each page answers, when the store refuses, and how everything is
set up. Nothing in it depends on what the engine does, and every action names the job that it is about by
the action that submitted it. So a part can be left out and the rest still makes sense, which is what
shrinking needs. Nothing runs here. Next room: `sim_story.py`, which makes plans up.
"""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

Facts = dict[str, Any]


@dataclass(slots=True)
class Action:
    """One thing that somebody does. `leave`: when they give up, in seconds or in turns of the run loop."""

    id: int
    at: float
    who: str
    what: str
    args: Facts = field(default_factory=dict)
    leave: Facts = field(default_factory=dict)


@dataclass(slots=True)
class Plan:
    """One story. Times are Trio's seconds from its begin.

    `pages`: how each URL answers, call after call; the last answer stays. `phases`: when a host is slow or
    busy. `refusals`: when the store refuses what. `jitter`: how the store's answers are delayed. `tempo`
    names the kind of story; nothing depends on it.
    """

    seed: int
    schedule: int
    tempo: str
    length: float
    wall: float
    config: Facts
    gate: Facts
    hooks: str = "plain"
    inside: bool = False
    jitter: Facts = field(default_factory=dict)
    pages: dict[str, list[Facts]] = field(default_factory=dict)
    phases: list[Facts] = field(default_factory=list)
    refusals: list[Facts] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)

    def to_json(self) -> str:
        """Return the plan as text."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> "Plan":
        """Return the plan that a text holds."""
        facts = json.loads(text)
        actions = [Action(**action) for action in facts.pop("actions")]
        return cls(actions=actions, **facts)

    def copy(self, **changed: Any) -> "Plan":
        """Return a plan that shares nothing with this one, with some fields changed."""
        plan = Plan.from_json(self.to_json())
        for name, value in changed.items():
            setattr(plan, name, value)
        return plan

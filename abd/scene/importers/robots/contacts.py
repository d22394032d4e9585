"""Which links meet, and how they rub: MuJoCo's rules for pairs of geoms as materials of bodies and contact filters.

Geoms meet where ``contype_a & conaffinity_b`` or the reverse is not 0, and rub with the larger of both coefficients if one
of them has more than one contact dimension. Materials stand for classes of bodies with the same rules.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import combinations_with_replacement

import numpy as np

UNTOUCHED = "picture"
"""Material of bodies whose shapes are for pictures only."""
SAME = 1e-12


@dataclass(frozen=True)
class Rules:
    """How a body meets others.

    Attributes:
        masks: (contype, conaffinity) of its geoms; mu: coefficient of friction; rubs: more than one contact dimension.
    """

    masks: frozenset[tuple[int, int]]
    mu: float
    rubs: bool

    @property
    def touches(self) -> bool:
        """Whether it meets anything."""
        return any(contype or conaffinity for contype, conaffinity in self.masks)

    def meets(self, other: Rules) -> bool:
        """Whether a geom of the one meets a geom of the other."""
        return any(a & d or c & b for a, b in self.masks for c, d in other.masks)

    def friction(self, other: Rules) -> float:
        """Coefficient between two of them."""
        return max(self.mu, other.mu) if self.rubs or other.rubs else 0.0


@dataclass
class Contacts:
    """Materials of a robot's bodies.

    Attributes:
        rules: of every material, by name.
    """

    model: object
    notes: list[str]
    rules: dict[str, Rules] = field(default_factory=dict)
    _names: dict[Rules, str] = field(default_factory=dict)

    def material(self, name: str, geoms: list[int]) -> str:
        """The material of a body with these geoms, all of which touch, or none."""
        model = self.model
        masks = frozenset((int(model.geom_contype[g]), int(model.geom_conaffinity[g])) for g in geoms)
        if len(masks) > 1:
            self.notes.append(f"'{name}': its shapes have different contype and conaffinity; what one meets, all meet")
        sliding = [float(model.geom_friction[g, 0]) for g in geoms]
        if len(set(sliding)) > 1:
            self.notes.append(f"'{name}': its shapes have different friction; {max(sliding):g} is taken")
        mu = max(sliding, default=0.0)
        rules = Rules(masks, mu, any(model.geom_condim[g] > 1 for g in geoms))
        if not rules.touches:
            rules = Rules(frozenset([(0, 0)]), 0.0, False)
        if rules not in self._names:
            self._names[rules] = self._name(rules)
            self.rules[self._names[rules]] = rules
        return self._names[rules]

    def _name(self, rules: Rules) -> str:
        if not rules.touches:
            return UNTOUCHED
        text = f"mu_{rules.mu:g}" if rules.rubs else f"smooth_{rules.mu:g}"
        if rules.masks != frozenset([(1, 1)]):
            text += "".join(f"_{contype}_{conaffinity}" for contype, conaffinity in sorted(rules.masks))
        return text

    def tables(self) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
        """Keys of materials, and of the pairs that depart from the rule of combination."""
        materials = [{"name": name, "mu": rules.friction(rules)} for name, rules in self.rules.items()]
        pairs = []
        for a, b in combinations_with_replacement(self.rules, 2):
            one, two = self.rules[a], self.rules[b]
            if not one.meets(two):
                pairs.append({"between": (a, b), "enabled": False})
                continue
            by_rule = np.sqrt(one.friction(one) * two.friction(two))
            if abs(one.friction(two) - by_rule) > SAME:
                pairs.append({"between": (a, b), "mu": one.friction(two)})
        return materials, pairs


def tell_contacts(model, notes: list[str]) -> None:
    """What MuJoCo's contacts have and ours do not."""
    touching = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
    found: Counter[str] = Counter()
    found["torsional and rolling friction (condim 4 and 6)"] = int((model.geom_condim[touching] > 3).sum())
    found["margin"] = int((model.geom_margin[touching] != 0.0).sum())
    found["priority"] = int((model.geom_priority[touching] != 0).sum())
    for key, name in (("geom_adhesion", "adhesion"), ("geom_surfacevel", "surface velocity")):
        values = getattr(model, key, None)
        if values is not None:
            found[name] = int(sum(bool(np.any(one)) for one in values))
    told = [f"{name} of {count} geoms" for name, count in found.items() if count]
    if told:
        notes.append(f"not followed: {', '.join(told)}")
    if model.npair:
        notes.append(f"not followed: {model.npair} contact pairs with rules of their own; the rules of the geoms hold")

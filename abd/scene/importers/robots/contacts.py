"""Contact rules of a robot: MuJoCo's rules for pairs of geoms as materials of bodies and contact filters.

Two geoms collide if ``contype_a & conaffinity_b`` or the reverse is not 0, or if a `<pair>` names them. Friction
(sliding, torsional, rolling) is that of the geom of higher priority, else the larger coefficient of both; the contact
dimension selects which of the three apply. All bodies with the same rules share a material.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations_with_replacement

import numpy as np

from abd.scene.importers.formats import free_name

UNTOUCHED = "picture"
"""Material of bodies with visual shapes only."""
SAME = 1e-12
DIMENSIONS = (3, 4, 6)
"""Contact dimension from which sliding, torsional and rolling friction act."""
FRICTION = ("mu", "spinning", "rolling")
"""Keys of materials in MuJoCo's order."""

Friction = tuple[float, float, float]


@dataclass(frozen=True)
class Rules:
    """Contact rules of a body.

    Attributes:
        masks: (contype, conaffinity) of its geoms; friction: sliding, torsional [m], rolling [m].
        dimension: MuJoCo's condim; priority: MuJoCo's; pairs: numbers of the `<pair>` elements that name its geoms.
    """

    masks: frozenset[tuple[int, int]]
    friction: Friction
    dimension: int
    priority: int = 0
    pairs: frozenset[int] = frozenset()

    @property
    def touches(self) -> bool:
        """Whether it collides with anything."""
        return bool(self.pairs) or any(contype or conaffinity for contype, conaffinity in self.masks)

    def meets(self, other: Rules) -> bool:
        """Whether a geom of the one collides with a geom of the other by their masks."""
        return any(a & d or c & b for a, b in self.masks for c, d in other.masks)


@dataclass
class Contacts:
    """Materials of a robot's bodies.

    Attributes:
        rules: of every material, by name; pairs: numbers of the `<pair>` elements of a geom; dimension: largest condim.
    """

    model: object
    notes: list[str]
    rules: dict[str, Rules] = field(default_factory=dict)

    def __post_init__(self):
        model = self.model
        self.pairs: dict[int, list[int]] = {}
        for k in range(model.npair):
            for geom in (int(model.pair_geom1[k]), int(model.pair_geom2[k])):
                self.pairs.setdefault(geom, []).append(k)
        self.dimension = int(max([*model.geom_condim, *model.pair_dim], default=1))

    def touches(self, geom: int) -> bool:
        """Whether a geom collides with anything."""
        return bool(self.model.geom_contype[geom] or self.model.geom_conaffinity[geom] or geom in self.pairs)

    def collide(self, one: int, other: int) -> bool:
        """Whether two geoms collide by their masks."""
        types, affinities = self.model.geom_contype, self.model.geom_conaffinity
        return bool(types[one] & affinities[other] or types[other] & affinities[one])

    def in_pair(self, one: int, other: int) -> bool:
        """Whether a `<pair>` names two geoms."""
        return not set(self.pairs.get(one, ())).isdisjoint(self.pairs.get(other, ()))

    def paired(self, link_of_body: np.ndarray) -> set[tuple[int, int]]:
        """Return pairs of links, smaller first, with contact by a `<pair>`."""
        model = self.model
        bodies = np.stack([model.geom_bodyid[model.pair_geom1], model.geom_bodyid[model.pair_geom2]], axis=1)
        return {(min(pair), max(pair)) for pair in link_of_body[bodies.reshape(-1, 2)].tolist()}

    def material(self, name: str, geoms: list[int]) -> str:
        """Return the material of a body with these geoms, which all have contact, or none has."""
        model = self.model
        masks = frozenset((int(model.geom_contype[g]), int(model.geom_conaffinity[g])) for g in geoms)
        pairs = frozenset(k for g in geoms for k in self.pairs.get(g, ()))
        rules = Rules(frozenset([(0, 0)]), (0.0, 0.0, 0.0), 1, 0, pairs)
        if rules.touches or masks != rules.masks:
            others = {frozenset(int(model.pair_geom1[k] + model.pair_geom2[k]) - g for k in self.pairs.get(g, ())) for g in geoms}
            if len(masks) > 1 or len(others) > 1:
                message = "its shapes have different contype, conaffinity or pairs; the union of their rules applies to all"
                self.notes.append(f"'{name}': {message}")
            priority = max((int(model.geom_priority[g]) for g in geoms), default=0)
            leading = [g for g in geoms if int(model.geom_priority[g]) == priority]
            friction = tuple(model.geom_friction[leading].max(axis=0).tolist())
            dimension = int(model.geom_condim[leading].max())
            given = zip(model.geom_priority[geoms], model.geom_condim[geoms], model.geom_friction[geoms])
            if len({(one, condim, _acting(values, self.dimension)) for one, condim, values in given}) > 1:
                used = f"condim {dimension} and friction {' '.join(f'{x:g}' for x in friction)} are used"
                self.notes.append(f"'{name}': its shapes have different friction, condim or priority; {used}")
            rules = Rules(masks, friction, dimension, priority, pairs)
        name = next((known for known, one in self.rules.items() if one == rules), None) or self._name(rules)
        self.rules[name] = rules
        return name

    def _name(self, rules: Rules) -> str:
        if not rules.touches:
            return UNTOUCHED
        text = f"mu_{rules.friction[0]:g}" if rules.dimension > 1 else f"smooth_{rules.friction[0]:g}"
        if rules.masks != frozenset([(1, 1)]):
            text += "".join(f"_{contype}_{conaffinity}" for contype, conaffinity in sorted(rules.masks))
        text += f"_priority_{rules.priority}" if rules.priority else ""
        text += "".join(f"_pair_{k}" for k in sorted(rules.pairs))
        return free_name(text, set(self.rules))

    def tables(self) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
        """Return keys of materials, and of pairs with values other than the geometric mean."""
        own = {name: _acting(rules.friction, rules.dimension) for name, rules in self.rules.items()}
        materials = [{"name": name, **dict(zip(FRICTION, friction))} for name, friction in own.items()]
        pairs = []
        for a, b in combinations_with_replacement(self.rules, 2):
            one, two = self.rules[a], self.rules[b]
            if not (one.meets(two) or one.pairs & two.pairs):
                pairs.append({"between": (a, b), "enabled": False})
                continue
            wanted, by_rule = self._friction(one, two), np.sqrt(np.multiply(own[a], own[b]))
            keys = {key: x for key, x, y in zip(FRICTION, wanted, by_rule) if abs(x - y) > SAME}
            if keys:
                pairs.append({"between": (a, b)} | keys)
        return materials, pairs

    def _friction(self, one: Rules, two: Rules) -> Friction:
        """Return coefficients of two bodies: of their `<pair>`s, else by priority, else the larger ones."""
        model = self.model
        if common := sorted(one.pairs & two.pairs):
            friction = model.pair_friction[common][:, [0, 2, 3]].max(axis=0)
            dimension = int(model.pair_dim[common].max())
            if len({(int(model.pair_dim[k]), *model.pair_friction[k].tolist()) for k in common}) > 1:
                ends = [[model.geom(int(g)).name for g in (model.pair_geom1[k], model.pair_geom2[k])] for k in common]
                listed = ", ".join(f"'{a}' and '{b}'" for a, b in ends)
                self.notes.append(f"pairs of the same bodies have different friction or condim; the largest are used: {listed}")
        elif one.priority != two.priority:
            leading = max(one, two, key=lambda rules: rules.priority)
            friction, dimension = leading.friction, leading.dimension
        else:
            friction = np.maximum(one.friction, two.friction)
            dimension = max(one.dimension, two.dimension)
        return _acting(friction, dimension)


def _acting(friction: Friction | np.ndarray, dimension: int) -> Friction:
    """Return the active coefficients of friction for a contact dimension, 0 for the others."""
    return tuple(float(x) if dimension >= least else 0.0 for x, least in zip(friction, DIMENSIONS))

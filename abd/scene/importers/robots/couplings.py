"""Equality constraints and tendons of a robot: joints, locks, couplings, springs and ropes of the scene."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.polynomial import Polynomial

from abd.rotations import pose
from abd.scene.importers.compound import frame_keys
from abd.scene.importers.robots.compiled import disables, mujoco
from abd.scene.importers.robots.joints import ENFORCEMENT, Coordinate
from abd.scene.importers.robots.links import STATIC, Link, place_in, pose_of


@dataclass
class Ties:
    """Constraints between links and coordinates of a robot, in addition to its tree of joints.

    Attributes:
        of_body: (nbody,) link of every body of MuJoCo; joints, couplings: keys of those of the scene.
    """

    model: object
    links: list[Link]
    of_body: np.ndarray
    coordinates: dict[int, Coordinate]
    equality_names: list[str]
    tendon_names: list[str]
    notes: list[str]
    joints: list[dict[str, object]] = field(default_factory=list)
    couplings: list[dict[str, object]] = field(default_factory=list)

    def add_all(self) -> None:
        """All equalities, then all tendons."""
        model = self.model
        kinds = mujoco.mjtEq
        makers = {
            int(kinds.mjEQ_CONNECT): self._connect,
            int(kinds.mjEQ_WELD): self._weld,
            int(kinds.mjEQ_JOINT): self._coupled_joints,
            int(kinds.mjEQ_TENDON): self._coupled_tendons,
        }
        for k in range(0 if disables(model, "EQUALITY", "CONSTRAINT") else model.neq):
            make = makers.get(int(model.eq_type[k]))
            if make is None:
                self.notes.append(f"equality '{self.equality_names[k]}' is ignored: its type is not supported")
            else:
                make(k)
        for k in range(model.ntendon):
            self._tendon(k)

    def _ends(self, k: int) -> tuple[tuple[int, np.ndarray], tuple[int, np.ndarray]]:
        """Link, and (4, 4) frame in it, of both objects of an equality: bodies or sites."""
        model = self.model
        out = []
        for number in (int(model.eq_obj1id[k]), int(model.eq_obj2id[k])):
            if model.eq_objtype[k] == mujoco.mjtObj.mjOBJ_SITE:
                out.append(self._site(number))
            else:
                out.append(self._placed(number))
        return out[0], out[1]

    def _placed(self, body: int) -> tuple[int, np.ndarray]:
        """Link of a body, and (4, 4) frame of the body in it; of static links, in the world."""
        link = int(self.of_body[body])
        return link, place_in(self.links[link], body, self.model)

    def _site(self, number: int) -> tuple[int, np.ndarray]:
        model = self.model
        link, frame = self._placed(int(model.site_bodyid[number]))
        return link, frame @ pose_of(model.site_pos[number], model.site_quat[number])

    def _between(self, k: int, kind: str, first: tuple[int, np.ndarray], second: tuple[int, np.ndarray]) -> None:
        name = self.equality_names[k]
        if first[0] == second[0]:
            self.notes.append(f"equality '{name}' is ignored: it connects a link to itself")
            return
        table, D, C = self._join(name, kind, first, second)
        table |= {"enforcement": ENFORCEMENT, "active": bool(self.model.eq_active0[k])}
        table |= {"parent_frame": frame_keys(D), "child_frame": frame_keys(C)}

    def _join(
        self, name: str, kind: str, first: tuple[int, np.ndarray], second: tuple[int, np.ndarray]
    ) -> tuple[dict[str, object], np.ndarray, np.ndarray]:
        """Add a joint between links; its keys, and the frames (4, 4) in the parent and in the child."""
        if second[0] == STATIC:
            first, second = second, first
        parent, child = self.links[first[0]].name, self.links[second[0]].name
        table = {"name": name, "type": kind, "parent": parent, "child": child, "collide": True}
        self.joints.append(table)
        return table, first[1], second[1]

    def _connect(self, k: int) -> None:
        first, second = self._ends(k)
        if self.model.eq_objtype[k] != mujoco.mjtObj.mjOBJ_SITE:
            data = self.model.eq_data[k]
            first, second = (first[0], first[1] @ pose(np.eye(3), data[:3])), (second[0], second[1] @ pose(np.eye(3), data[3:6]))
        self._between(k, "spherical", first, second)

    def _weld(self, k: int) -> None:
        (first, second), data = self._ends(k), self.model.eq_data[k]
        if self.model.eq_objtype[k] != mujoco.mjtObj.mjOBJ_SITE:
            first = first[0], first[1] @ pose_of(data[3:6], data[6:10])
            second = second[0], second[1] @ pose(np.eye(3), data[:3])
        turns = data[10] == 0.0  # torquescale 0: the weld constrains only the point
        self._between(k, "spherical" if turns else "fixed", first, second)

    def _coupled_joints(self, k: int) -> None:
        model, name = self.model, self.equality_names[k]
        first, second = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
        if first not in self.coordinates or (second >= 0 and second not in self.coordinates):
            self.notes.append(f"equality '{name}' is ignored: it is on a ball or free joint")
            return
        one = self.coordinates[first]
        rest = float(model.qpos0[model.jnt_qposadr[first]])
        polynomial = Polynomial(model.eq_data[k, :5])
        if second < 0:
            self._lock(name, one, rest + float(model.eq_data[k, 0]), k)
            return
        two = self.coordinates[second]
        value = one.sign * (polynomial(Polynomial([-float(model.qpos0[model.jnt_qposadr[second]]), two.sign])) + rest)
        coefficients = np.trim_zeros(value.coef, "b").tolist() or [0.0]
        if len(coefficients) == 1:
            self._lock(name, one, one.sign * coefficients[0], k)
            return
        term = {"coordinate": two.key}
        factor_only = len(coefficients) == 2 and coefficients[0] == 0.0
        term |= {"factor": coefficients[1]} if factor_only else {"polynomial": tuple(coefficients)}
        self._couple(name, one.key, [term], k)

    def _lock(self, name: str, one: Coordinate, value: float, k: int) -> None:
        if "drive" in one.settings or not self.model.eq_active0[k]:
            self.notes.append(f"equality '{name}' is ignored: it is inactive, or locks '{one.key}', which has a drive")
            return
        one.settings |= {"locked": True, "lock_value": one.sign * value}

    def _couple(self, name: str, key: str, terms: list[dict[str, object]], k: int) -> None:
        keys = {"name": name, "coordinate": key, "terms": terms, "enforcement": ENFORCEMENT}
        self.couplings.append(keys | {"active": bool(self.model.eq_active0[k])})

    def _coupled_tendons(self, k: int) -> None:
        """``L1 - L1_0 = P(L2 - L2_0)`` of tendons that are sums over coordinates."""
        model, name = self.model, self.equality_names[k]
        first, second = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
        sums = [self._sum(tendon) if tendon >= 0 else [] for tendon in (first, second)]
        coefficients = model.eq_data[k, :5 if second >= 0 else 1]
        if sums[0] is None or sums[1] is None:
            self.notes.append(f"equality '{name}' is ignored: tendons over sites are not supported")
            return
        if coefficients[2:].any():
            self._curved(k, sums[0], sums[1], coefficients.tolist())
            return
        slope = float(coefficients[1]) if second >= 0 else 0.0
        constant = float(coefficients[0] + model.tendon_length0[first] - slope * model.tendon_length0[second])
        parts = [(one, -weight) for one, weight in sums[0][1:]] + [(one, slope * weight) for one, weight in sums[1]]
        led, lead = sums[0][0]
        terms, value = _solved(led, lead, parts, constant)
        if not terms:
            self._lock(name, led, led.sign * value, k)
            return
        self._couple(name, led.key, terms, k)

    def _curved(
        self, k: int, led: list[tuple[Coordinate, float]], lead: list[tuple[Coordinate, float]], p: list[float]
    ) -> None:
        """A coupling by the formula of a polynomial of a sum of coordinates."""
        model, (first, second) = self.model, (int(self.model.eq_obj1id[k]), int(self.model.eq_obj2id[k]))
        (one, weight), *others = led
        variables: dict[str, str] = {}

        def total(parts: list[tuple[Coordinate, float]], constant: float) -> str:
            out = [repr(constant)]
            for part, w in parts:
                variables[f"v{len(variables)}"] = part.key
                out.append(f"{w * part.sign!r}*v{len(variables) - 1}")
            return f"({' + '.join(out)})"

        length = total(lead, -float(model.tendon_length0[second]))
        horner = f"{p[0]!r} + {length}*({p[1]!r} + {length}*({p[2]!r} + {length}*({p[3]!r} + {length}*{p[4]!r})))"
        rest = total([(part, -w) for part, w in others], float(model.tendon_length0[first]))
        formula = f"{one.sign / weight!r}*({horner} + {rest})"
        keys = {"name": self.equality_names[k], "coordinate": one.key, "formula": formula, "variables": variables}
        self.couplings.append(keys | {"enforcement": ENFORCEMENT, "active": bool(model.eq_active0[k])})

    def _sum(self, tendon: int) -> list[tuple[Coordinate, float]] | None:
        """Coordinates and weights of a fixed tendon; None for one over sites."""
        model = self.model
        start = int(model.tendon_adr[tendon])
        parts = []
        for at in range(start, start + int(model.tendon_num[tendon])):
            joint = int(model.wrap_objid[at])
            if model.wrap_type[at] != mujoco.mjtWrap.mjWRAP_JOINT or joint not in self.coordinates:
                return None
            parts.append((self.coordinates[joint], float(model.wrap_prm[at])))
        return parts

    def _tendon(self, k: int) -> None:
        """Springs, dampers and limits of a tendon."""
        model, name = self.model, self.tendon_names[k]
        stiffness, damping = self._gains(k)
        limited = bool(model.tendon_limited[k]) and not disables(model, "LIMIT", "CONSTRAINT")
        friction = 0.0 if disables(model, "FRICTIONLOSS", "CONSTRAINT") else float(model.tendon_frictionloss[k])
        effects = {"stiffness": stiffness, "damping": damping, "range": limited, "frictionloss": friction}
        effects |= {"armature": float(model.tendon_armature[k])}
        effects = [key for key, value in effects.items() if value]
        if not effects:
            return
        if (stiffness or damping) and self._spring_of_sum(k):
            effects = [key for key in effects if key not in ("stiffness", "damping")]
            if not effects:
                return
        ends = self._two_sites(k)
        if ends is None:
            verb = "is" if len(effects) == 1 else "are"
            self.notes.append(f"tendon '{name}': {' and '.join(effects)} {verb} ignored: it is no line between two sites")
            return
        rest = model.tendon_lengthspring[k]
        if (stiffness or damping) and rest[0] == rest[1]:
            keys = {"stiffness": stiffness, "damping": damping, "rest_length": float(rest[0])}
            self._line(f"{name}_spring", "spring", ends, keys)
        elif stiffness or damping:
            self.notes.append(
                f"tendon '{name}': its spring is ignored: a slack range ({rest[0]:g} .. {rest[1]:g} m) is not supported"
            )
        if limited:
            low, high = model.tendon_range[k].tolist()
            self._line(f"{name}_rope", "rope", ends, {"distance": high, "enforcement": ENFORCEMENT})
            if low > 0.0:
                self.notes.append(f"tendon '{name}': its smallest length {low:g} m is not supported")
        if friction or "armature" in effects:
            self.notes.append(f"tendon '{name}': its frictionloss and armature are not supported")

    def _gains(self, k: int) -> tuple[float, float]:
        """Return the enabled stiffness and damping of a tendon."""
        model = self.model
        stiffness = 0.0 if disables(model, "SPRING") else float(model.tendon_stiffness[k])
        return stiffness, 0.0 if disables(model, "DAMPER") else float(model.tendon_damping[k])

    def _spring_of_sum(self, k: int) -> bool:
        """Add the spring of a fixed tendon as a compliant coupling of its coordinates; return whether it was added."""
        model, sums = self.model, [(one, weight) for one, weight in self._sum(k) or [] if weight]
        stiffness, damping = self._gains(k)
        low, high = model.tendon_lengthspring[k].tolist()
        if not sums or not stiffness or low != high:
            return False
        (led, lead), *others = sums
        if not others:
            _add_spring(led.settings, stiffness * lead**2, damping * lead**2, led.sign * low / lead)
            return True
        terms, _ = _solved(led, lead, [(one, -weight) for one, weight in others], low)
        keys = {
            "name": f"{self.tendon_names[k]}_spring",
            "coordinate": led.key,
            "terms": terms,
            "enforcement": "compliant",
        }
        self.couplings.append(keys | {"compliance": 1.0 / (stiffness * lead**2), "damping": damping * lead**2})
        return True

    def _two_sites(self, k: int) -> list[tuple[int, np.ndarray]] | None:
        model = self.model
        start = int(model.tendon_adr[k])
        if model.tendon_num[k] != 2 or any(model.wrap_type[start + i] != mujoco.mjtWrap.mjWRAP_SITE for i in (0, 1)):
            return None
        ends = [self._site(int(model.wrap_objid[start + i])) for i in (0, 1)]
        return None if ends[0][0] == ends[1][0] else ends

    def _line(self, name: str, kind: str, ends: list[tuple[int, np.ndarray]], keys: dict[str, object]) -> None:
        table, D, C = self._join(name, kind, *ends)
        anchors = {"parent_anchor": tuple(D[:3, 3].tolist()), "child_anchor": tuple(C[:3, 3].tolist())}
        table |= anchors | keys


def _solved(
    led: Coordinate, lead: float, parts: list[tuple[Coordinate, float]], constant: float
) -> tuple[list[dict[str, object]], float]:
    """Return terms of a coupling ``lead q_led = constant + sum of weight q`` over parts (coordinate, weight), and its constant
    in units of `led`."""
    factor = led.sign / lead
    terms = [{"coordinate": one.key, "factor": factor * weight * one.sign} for one, weight in parts if weight]
    if constant and terms:
        terms[0]["polynomial"] = (factor * constant, terms[0].pop("factor"))
    return terms, factor * constant


def _add_spring(settings: dict, stiffness: float, damping: float, rest: float) -> None:
    """Give a coordinate a spring in addition to the one that it may have: one with the sum of both forces."""
    total = settings.get("stiffness", 0.0) + stiffness
    rest = (settings.get("stiffness", 0.0) * settings.get("rest", 0.0) + stiffness * rest) / total
    settings |= {"stiffness": total, "rest": rest}
    if damping:
        settings["damping"] = settings.get("damping", 0.0) + damping

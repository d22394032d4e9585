"""What must hold in couplings, given the joints of the scene."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from abd.joints.rows.measured_rows import COEFFICIENTS
from abd.scene.checks.coordinate_checks import check_function
from abd.scene.compile.couplings import split_reference
from abd.scene.schema.findings import Finding, did_you_mean, enumerated, within
from abd.scene.schema.formula import WORDS
from abd.scene.schema.joint_schema import CouplingSpec, CouplingTermSpec

AGREEING = 1e-9
"""Largest entry of the part of a relation that is independent of the others, over its largest entry."""
FORMS = ("factor", "polynomial", "table")
Coordinates = dict[str, list[str] | None]
"""Names of the coordinates of every joint; None where the joint's own table is wrong."""


def check_coupling(coupling: CouplingSpec) -> Iterator[Finding]:
    """Findings that need no other table, with paths relative to the coupling."""
    yield from _check_function(coupling)
    for position, term in enumerate(coupling.terms):
        yield from within(_check_term(term), "terms", position)
    if coupling.scale == 0.0:
        yield Finding(("scale",), "is zero: a lock of the coordinate says that better", 0.0, "use locked = true")
    if coupling.enforcement != "compliant":
        for key in ("compliance", "damping"):
            if getattr(coupling, key):
                message = f"has no effect on a coupling that is enforced by {coupling.enforcement}"
                yield Finding((key,), message, getattr(coupling, key), 'set enforcement = "compliant", or drop it')


def check_coupled(coupling: CouplingSpec, joints: Coordinates) -> Iterator[Finding]:
    """Findings about the coordinates that a coupling names, with paths relative to it."""
    places = [(("coordinate",), coupling.coordinate)]
    places += [(("terms", k, "coordinate"), term.coordinate) for k, term in enumerate(coupling.terms)]
    places += [(("variables", name), text) for name, text in coupling.variables.items()]
    for path, text in places:
        yield from _check_reference(path, text, joints)


def check_cycles(couplings: list[CouplingSpec], joints: Coordinates) -> Iterator[Finding]:
    """A coordinate that depends on itself in another way than the rest of the couplings say already, with paths relative to
    the scene."""
    known = {name: names or [] for name, names in joints.items()}
    depends: dict[tuple, list[tuple]] = {}
    for index, coupling in enumerate(couplings):
        target = split_reference(coupling.coordinate, known)
        places = [("terms", k, "coordinate") for k in range(len(coupling.terms))]
        places += [("variables", name) for name in coupling.variables]
        given = [*(term.coordinate for term in coupling.terms), *coupling.variables.values()]
        sources = [split_reference(text, known) for text in given]
        for position, source in enumerate(sources):
            chain = _way(source, target, depends)
            if chain and not _follows(couplings[: index + 1], known):
                words = " -> ".join(_shown(one) for one in [target, *chain])
                message = f"'{_shown(target)}' depends on itself: {words}"
                path = ("coupling", index, *places[position])
                remedy = "drop one of these relations, or give them factors that agree"
                yield Finding(path, message, given[position], remedy)
        depends.setdefault(target, []).extend(sources)


def _follows(couplings: list[CouplingSpec], known: dict[str, list[str]]) -> bool:
    """Whether the last one of some couplings follows from the others: a ring of gears whose ratios agree. Told of straight
    lines alone."""
    rows, places = [], {}
    for coupling in couplings:
        row = {split_reference(coupling.coordinate, known): 1.0} if coupling.terms else None
        constant = 0.0
        for term in coupling.terms:
            polynomial = term.polynomial or (0.0, 1.0 if term.factor is None else term.factor)
            if term.table is not None or any(polynomial[2:]):
                row = None
                break
            source = split_reference(term.coordinate, known)
            constant += coupling.scale * polynomial[0]
            row[source] = row.get(source, 0.0) - coupling.scale * polynomial[1] if len(polynomial) > 1 else 0.0
        if row is not None:
            rows.append((row, constant))
        elif coupling is couplings[-1]:
            return False
    for row, _ in rows:
        for source in row:
            places.setdefault(source, len(places))
    matrix = np.zeros((len(rows), len(places) + 1))
    for k, (row, constant) in enumerate(rows):
        for source, weight in row.items():
            matrix[k, places[source]] += weight
        matrix[k, -1] = constant
    others = np.linalg.lstsq(matrix[:-1].T, matrix[-1], rcond=None)[0]
    return bool(np.abs(matrix[-1] - others @ matrix[:-1]).max() < AGREEING * np.abs(matrix[-1]).max())


def _way(start: tuple, end: tuple, depends: dict[tuple, list[tuple]]) -> list[tuple]:
    """The coordinates from one to another along what they depend on; empty where no way leads there."""
    before: dict[tuple, tuple | None] = {start: None}
    waiting = [start]
    while waiting:
        one = waiting.pop(0)
        if one == end:
            chain = [one]
            while before[one] is not None:
                one = before[one]
                chain.append(one)
            return chain[::-1]
        for source in depends.get(one, []):
            if source not in before:
                before[source] = one
                waiting.append(source)
    return []


def _check_function(coupling: CouplingSpec) -> Iterator[Finding]:
    """f has one form: terms, or a formula or function of variables."""
    given = [key for key in ("terms", "formula", "function") if getattr(coupling, key)]
    if not given:
        yield Finding((), "has no terms", remedy="give terms, or a formula or function of variables", is_absence=True)
    elif len(given) > 1:
        message = f"{enumerated(given, 'and')} are given, but f has one form"
        yield Finding((given[1],), message, getattr(coupling, given[1]), "keep one of them")
    elif given == ["terms"] and coupling.variables:
        yield Finding(("variables",), "have no effect with terms", coupling.variables, "drop them, or give a formula")
    elif given != ["terms"] and not coupling.variables:
        yield Finding(
            (given[0],), "has no variables", getattr(coupling, given[0]), "give variables = { a = 'joint.theta' }"
        )
    else:
        for name in coupling.variables if coupling.formula is not None else ():
            if not name.isidentifier() or name in WORDS:
                yield Finding(("variables", name), "is no name for a variable", name, "use letters, such as a or q1")
        yield from check_function(coupling, "formula", "function", tuple(coupling.variables))


def _check_term(term: CouplingTermSpec) -> Iterator[Finding]:
    given = [key for key in FORMS if getattr(term, key) is not None]
    if len(given) > 1:
        message = f"{enumerated(given, 'and')} are given, but f has one form"
        yield Finding((given[1],), message, getattr(term, given[1]), "keep one of them")
    if term.polynomial is not None and not any(term.polynomial[1:]):
        yield Finding(("polynomial",), "does not depend on the coordinate", term.polynomial, "[0, 2] is f = 2 q")
    elif term.polynomial is not None and len(term.polynomial) > COEFFICIENTS:
        message = f"has {len(term.polynomial)} coefficients, more than {COEFFICIENTS}"
        yield Finding(("polynomial",), message, term.polynomial, "use a table of points")
    if term.factor == 0.0:
        yield Finding(("factor",), "is zero: f does not depend on the coordinate", 0.0, "drop the term")
    if term.table is not None and any(b[0] <= a[0] for a, b in pairwise(term.table)):
        yield Finding(("table",), "its first numbers do not grow", term.table, "put the points in order, each q once")


def _check_reference(path: tuple, text: str, joints: Coordinates) -> Iterator[Finding]:
    known = {name: names or [] for name, names in joints.items()}
    joint, coordinate = split_reference(text, known)
    names = joints.get(joint, [])
    if joint not in joints:
        remedy = did_you_mean(joint, joints) or "name a joint and its coordinate, such as 'wheel.theta'"
        yield Finding(path, f"there is no joint '{joint}'", text, remedy)
    elif names is None:
        return
    elif not names:
        yield Finding(path, f"joint '{joint}' has no coordinates", text, "couple joints that have")
    elif coordinate is None:
        yield Finding(path, f"joint '{joint}' has the coordinates {enumerated(names, 'and')}", text, "name one of them")
    elif coordinate not in names:
        remedy = did_you_mean(coordinate, names) or f"it has {enumerated(names, 'and')}"
        yield Finding(path, f"joint '{joint}' has no coordinate '{coordinate}'", text, remedy)


def _shown(reference: tuple[str, str | None]) -> str:
    return ".".join(part for part in reference if part)

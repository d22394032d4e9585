"""Checks of couplings, given the joints of the scene."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from keyword import iskeyword

from abd.joints.rows.measured_rows import COEFFICIENTS
from abd.scene.checks.coordinate_checks import check_function
from abd.scene.compile.couplings import split_reference
from abd.scene.schema.fields import at_most_one, given, without_effect
from abd.scene.schema.findings import Finding, did_you_mean, enumerated, within
from abd.scene.schema.formula import WORDS
from abd.scene.schema.joint_schema import CouplingSpec, CouplingTermSpec

Coordinates = dict[str, list[str] | None]
"""Names of the coordinates of every joint; None for a joint with an invalid table."""


def check_coupling(coupling: CouplingSpec) -> Iterator[Finding]:
    """Yield findings that need no other table, with paths relative to the coupling."""
    yield from _check_function(coupling)
    for position, term in enumerate(coupling.terms):
        yield from within(_check_term(term), "terms", position)
    if coupling.scale == 0.0:
        yield Finding(("scale",), "is zero, so that the coordinate is locked", 0.0, "use locked = true")
    if coupling.enforcement != "compliant":
        where, remedy = f"on a coupling with enforcement = {coupling.enforcement}", 'set enforcement = "compliant", or remove it'
        yield from without_effect(coupling, ("compliance", "damping"), where, remedy)


def check_coupled(coupling: CouplingSpec, joints: Coordinates) -> Iterator[Finding]:
    """Yield findings about the coordinates of a coupling, with paths relative to it."""
    places = [(("coordinate",), coupling.coordinate)]
    places += [(("terms", k, "coordinate"), term.coordinate) for k, term in enumerate(coupling.terms)]
    places += [(("variables", name), text) for name, text in coupling.variables.items()]
    known = {name: names or [] for name, names in joints.items()}
    for path, text in places:
        yield from _check_reference(path, text, split_reference(text, known), joints)
        if path != ("coordinate",) and split_reference(text, known) == split_reference(coupling.coordinate, known):
            yield Finding(path, f"'{text}' depends on itself", text, "couple two different coordinates")


def _check_function(coupling: CouplingSpec) -> Iterator[Finding]:
    """Check that f has one form: terms, or a formula or function of variables."""
    forms = given(coupling, ("terms", "formula", "function"))
    yield from at_most_one(coupling, ("terms", "formula", "function"), "a coupling has one form of f")
    if not forms:
        yield Finding((), "has no terms", remedy="give terms, or a formula or function of variables")
    elif forms == ["terms"]:
        yield from without_effect(coupling, ("variables",), "with terms", "remove them, or give a formula")
    elif len(forms) == 1 and not coupling.variables:
        (form,) = forms
        yield Finding((form,), "has no variables", getattr(coupling, form), "give variables = { a = 'joint.theta' }")
    elif len(forms) == 1:
        for name in coupling.variables if coupling.formula is not None else ():
            if not name.isidentifier() or iskeyword(name) or name in WORDS:
                yield Finding(("variables", name), "is not a valid name of a variable", name, "use letters, such as a or q1")
        yield from check_function(coupling, "formula", "function", tuple(coupling.variables))


def _check_term(term: CouplingTermSpec) -> Iterator[Finding]:
    yield from at_most_one(term, ("factor", "polynomial", "table"), "a coupling has one form of f")
    if term.polynomial is not None and not any(term.polynomial[1:]):
        yield Finding(("polynomial",), "is constant", term.polynomial, "[0, 2] is f = 2 q")
    elif term.polynomial is not None and len(term.polynomial) > COEFFICIENTS:
        message = f"has {len(term.polynomial)} coefficients, more than {COEFFICIENTS}"
        yield Finding(("polynomial",), message, term.polynomial, "use a table of points")
    if term.factor == 0.0:
        yield Finding(("factor",), "is zero: f does not depend on the coordinate", 0.0, "remove the term")
    if term.table is not None and any(b[0] <= a[0] for a, b in pairwise(term.table)):
        yield Finding(("table",), "q must increase from point to point", term.table, "sort the points by q")


def _check_reference(path: tuple, text: str, reference: tuple[str, str | None], joints: Coordinates) -> Iterator[Finding]:
    joint, coordinate = reference
    names = joints.get(joint, [])
    if joint not in joints:
        remedy = did_you_mean(joint, joints) or "name a joint and its coordinate, such as 'wheel.theta'"
        yield Finding(path, f"there is no joint '{joint}'", text, remedy)
    elif names is None:
        return
    elif not names:
        yield Finding(path, f"joint '{joint}' has no coordinates", text, "use a joint with coordinates")
    elif coordinate is None:
        yield Finding(path, f"joint '{joint}' has the coordinates {enumerated(names, 'and')}", text, "give one of them")
    elif coordinate not in names:
        remedy = did_you_mean(coordinate, names) or f"it has {enumerated(names, 'and')}"
        yield Finding(path, f"joint '{joint}' has no coordinate '{coordinate}'", text, remedy)

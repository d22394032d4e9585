"""Formulas of t or of other variables, with exact derivatives: numbers, variables, pi, + - * / **, parentheses and `OPERATIONS`.

Python's own parser reads them (`ast`); everything else of its grammar is refused before the rest is compiled.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from abd.errors import UsageError
from abd.joints.measures.slopes import differences
from abd.scene.schema.findings import did_you_mean

MAX_DEPTH = 64
"""Nesting of parentheses, calls, signs and powers."""
MAX_LENGTH = 1000
"""Characters of a formula."""


class FormulaError(UsageError):
    """A formula that cannot be read or has no value; `column` counts from 1 (0: concerns the value, not the text)."""

    def __init__(self, message: str, column: int = 0, remedy: str = ""):
        super().__init__(message)
        self.column, self.remedy = column, remedy

    @property
    def located(self) -> str:
        """The message with the column."""
        return f"{self} (column {self.column})" if self.column else str(self)


def step(x: float) -> float:
    """0 for x < 0, 1 from there on."""
    return 1.0 if x >= 0.0 else 0.0


def smoothstep(a: float, b: float, x: float) -> float:
    """Rises from 0 at a to 1 at b, with zero slope at both ends: s^2 (3 - 2 s), s = (x - a)/(b - a) in [0, 1]."""
    s = min(max((x - a) / (b - a), 0.0), 1.0)
    return s * s * (3.0 - 2.0 * s)


def _smoothstep_slopes(a: float, b: float, x: float) -> Sequence[float]:
    s = (x - a) / (b - a)
    if not 0.0 < s < 1.0:
        return 0.0, 0.0, 0.0
    rise = 6.0 * s * (1.0 - s) / (b - a)
    return rise * (s - 1.0), -rise * s, rise


def _power_slopes(a: float, b: float) -> Sequence[float]:
    by_base = 0.0
    if b != 0.0:
        by_base = b * math.pow(a, b - 1.0) if a != 0.0 or b >= 1.0 else math.nan
    by_exponent = 0.0 if a == 0.0 < b else math.nan
    if a > 0.0:
        by_exponent = math.pow(a, b) * math.log(a)
    return by_base, by_exponent


def _first_of(choose: Callable[..., float]) -> Callable[..., Sequence[float]]:
    """Slopes of min and max: 1 for the first argument that has the value."""

    def slopes(*at: float) -> Sequence[float]:
        best = at.index(choose(at))
        return [float(k == best) for k in range(len(at))]

    return slopes


@dataclass(frozen=True)
class Operation:
    """A function of numbers, its partial derivatives, and its least and largest number of arguments (None: any)."""

    value: Callable[..., float]
    slopes: Callable[..., Sequence[float]]
    fewest: int = 1
    most: int | None = 1


OPERATIONS = {
    "sin": Operation(math.sin, lambda x: (math.cos(x),)),
    "cos": Operation(math.cos, lambda x: (-math.sin(x),)),
    "tan": Operation(math.tan, lambda x: (1.0 + math.tan(x) ** 2,)),
    "exp": Operation(math.exp, lambda x: (math.exp(x),)),
    "log": Operation(math.log, lambda x: (1.0 / x,)),
    "sqrt": Operation(math.sqrt, lambda x: (0.5 / math.sqrt(x),)),
    "abs": Operation(math.fabs, lambda x: (math.copysign(1.0, x),)),
    "min": Operation(min, _first_of(min), 2, None),
    "max": Operation(max, _first_of(max), 2, None),
    "step": Operation(step, lambda x: (0.0,)),
    "smoothstep": Operation(smoothstep, _smoothstep_slopes, 3, 3),
}
"""Functions by name; at a corner the slope is that of the side that the function takes there."""
OPERATORS: dict[type, Operation] = {
    ast.Add: Operation(operator.add, lambda a, b: (1.0, 1.0)),
    ast.Sub: Operation(operator.sub, lambda a, b: (1.0, -1.0)),
    ast.Mult: Operation(operator.mul, lambda a, b: (b, a)),
    ast.Div: Operation(operator.truediv, lambda a, b: (1.0 / b, -a / b**2)),
    ast.Pow: Operation(math.pow, _power_slopes),
    ast.USub: Operation(operator.neg, lambda a: (-1.0,)),
    ast.UAdd: Operation(operator.pos, lambda a: (1.0,)),
}
WORDS = ("t", "pi", *OPERATIONS)
NAMESPACE = {"__builtins__": {}, "pi": math.pi, **{name: operation.value for name, operation in OPERATIONS.items()}}
"""Names of compiled formulas; none of these functions takes the complex numbers that roots of negative numbers are."""


@dataclass(frozen=True)
class NamedFormula:
    """A formula of named values, as a function of a sequence of them; equal texts and names compare equal.

    Attributes:
        key: location in the scene for the error of a formula without a value.

    Raises:
        FormulaError: the text is invalid, or the formula has no finite value.
    """

    source: str
    names: tuple[str, ...]
    key: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        self._tree  # noqa: B018 - errors are reported at once

    @cached_property
    def _tree(self) -> ast.expr:
        return _read(self.source, self.names)

    @cached_property
    def _function(self) -> Callable[..., float]:
        function = ast.parse(f"lambda {', '.join(self.names)}: 0", mode="eval")
        function.body.body = self._tree
        return eval(compile(function, "<formula>", "eval"), NAMESPACE)

    def __call__(self, values: Sequence[float]) -> float:
        try:
            value = self._function(*map(float, values))
            is_finite = math.isfinite(value)
        except TypeError:  # of the complex root of a negative number
            raise self._without_value(f"no real value at {self._place(values)}") from None
        except (ArithmeticError, ValueError) as error:
            raise self._without_value(f"no value at {self._place(values)}: {error}") from None
        if not is_finite:
            raise self._without_value(f"no finite value at {self._place(values)}")
        return value

    def _without_value(self, problem: str) -> FormulaError:
        message = f"'{self.source}' has {problem}"
        return FormulaError(f"{self.key}: {message} -> limit its arguments by min or max" if self.key else message)

    def gradient(self, values: Sequence[float]) -> np.ndarray:
        """Return the derivatives (k,) by the values (k,), exact, or by differences where not finite (a root at 0)."""
        try:
            slopes = _linearized(self._tree, dict(zip(self.names, map(float, values), strict=True)))[1]
        except (ArithmeticError, ValueError):
            return differences(self, values)
        out = np.array([slopes.get(name, 0.0) for name in self.names])
        return out if np.isfinite(out).all() else differences(self, values)

    def _place(self, values: Sequence[float]) -> str:
        return ", ".join(f"{name} = {value:g}" for name, value in zip(self.names, values, strict=True))

    def __getstate__(self) -> dict:
        return {"source": self.source, "names": self.names, "key": self.key}


def _linearized(node: ast.expr, at: Mapping[str, float]) -> tuple[float, dict[str, float]]:
    """The value of a part of a formula, and its derivatives other than 0 by the variables in it (forward differentiation)."""
    if isinstance(node, ast.Constant):
        return node.value, {}
    if isinstance(node, ast.Name):
        return (at[node.id], {node.id: 1.0}) if node.id in at else (math.pi, {})
    operation, parts = _operation(node)
    values, inner, slopes = [], [], {}
    for part in parts:  # not a comprehension, which is a call of its own in Python 3.11: long sums are deep trees
        value, own = _linearized(part, at)
        values.append(value)
        inner.append(own)
    if any(inner):  # a function has to be smooth only where its arguments change
        for partial, own in zip(operation.slopes(*values), inner):
            for name, slope in own.items():
                slopes[name] = slopes.get(name, 0.0) + partial * slope
    return operation.value(*values), {name: slope for name, slope in slopes.items() if slope}


def _operation(node: ast.expr) -> tuple[Operation, Iterable[ast.expr]]:
    if isinstance(node, ast.BinOp):
        return OPERATORS[type(node.op)], (node.left, node.right)
    if isinstance(node, ast.UnaryOp):
        return OPERATORS[type(node.op)], (node.operand,)
    return OPERATIONS[node.func.id], node.args


def _read(text: str, names: Sequence[str]) -> ast.expr:
    """The syntax tree of a formula, of which every part is known."""
    if len(text) > MAX_LENGTH:
        raise FormulaError(f"has {len(text)} characters, more than {MAX_LENGTH}", MAX_LENGTH, "use keyframes or a file")
    line = " ".join(text.replace("#", "\0").splitlines())
    try:
        tree = ast.parse(line.strip(), mode="eval").body
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and type(node.value) is int:
                node.value = float(node.value)
    except SyntaxError as error:
        column = min(error.offset or 1, len(line.strip()) + 1) + _indent(line)
        raise FormulaError(f"cannot be read: {error.msg.partition('.')[0]}", column) from None
    except (OverflowError, ValueError, RecursionError, MemoryError) as error:
        raise FormulaError(f"cannot be read: {error or 'nested too deeply'}", 1) from None
    _check(tree, line, names, 0)
    return tree


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _check(node: ast.expr, text: str, names: Sequence[str], depth: int) -> None:
    """Refuse everything that is not part of a formula."""
    column = node.col_offset + 1 + _indent(text)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        # a long sum is a tree that leans to the left, and is not nested
        _check(node.left, text, names, depth)
        _check(node.right, text, names, depth + 1)
        return
    if depth > MAX_DEPTH:
        raise FormulaError("is nested too deeply", column)
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return
    if isinstance(node, ast.Name):
        if node.id in names or node.id == "pi":
            return
        if node.id in OPERATIONS:
            raise FormulaError(f"expected '(' after '{node.id}'", column + len(node.id))
        raise _unknown(node.id, names, column)
    if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
        _check(node.operand, text, names, depth + 1)
        return
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        if node.func.id not in OPERATIONS:
            raise _unknown(node.func.id, names, column)
        fewest, most = OPERATIONS[node.func.id].fewest, OPERATIONS[node.func.id].most
        if not fewest <= len(node.args) <= (most or len(node.args)):
            wanted = str(fewest) if most == fewest else f"at least {fewest}"
            raise FormulaError(f"{node.func.id} takes {wanted} argument(s), not {len(node.args)}", column)
        for argument in node.args:
            _check(argument, text, names, depth + 1)
        return
    power = isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor)
    part = ast.get_source_segment(text.strip(), node)
    message = f"expected numbers, variables, functions and + - * / **, found '{part}'"
    raise FormulaError(message, column, "a power is written **" if power else "")


def _unknown(name: str, names: Sequence[str], column: int) -> FormulaError:
    words = (*names, *WORDS[1:])
    return FormulaError(f"unknown name '{name}'", column, did_you_mean(name, words) or f"known are {', '.join(words)}")

"""Formulas of t, or of other variables: a small arithmetic grammar, read by recursive descent; no code is ever evaluated.

sum      = product (("+" | "-") product)*
product  = sign (("*" | "/") sign)*
sign     = ("+" | "-") sign | power
power    = atom ("**" sign)?                      right-associative: 2**3**2 = 2**9, -t**2 = -(t**2)
atom     = number | variable | "pi" | name "(" sum ("," sum)* ")" | "(" sum ")"
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Protocol

from abd.errors import AbdError
from abd.scene.schema.suggestions import did_you_mean

Function = Callable[..., float]

MAX_DEPTH = 64
"""Nesting of parentheses, signs and powers that a formula may have."""
MAX_LENGTH = 1000
"""Characters of a formula; with the nesting, it bounds the recursion of reading and evaluating."""

TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<sign>\*\*|[-+*/(),]))"
)


class FormulaError(AbdError):
    """A formula that cannot be read or evaluated; `column` counts from 1 (0: concerns the value, not the text)."""

    exit_status = 2

    def __init__(self, message: str, column: int = 0, remedy: str = ""):
        super().__init__(message)
        self.column, self.remedy = column, remedy


def step(x: float) -> float:
    """0 for x < 0, 1 from there on."""
    return 1.0 if x >= 0.0 else 0.0


def smoothstep(a: float, b: float, x: float) -> float:
    """Rises from 0 at a to 1 at b, with zero slope at both ends: s^2 (3 - 2 s), s = (x - a)/(b - a) in [0, 1]."""
    s = min(max((x - a) / (b - a), 0.0), 1.0)
    return s * s * (3.0 - 2.0 * s)


FUNCTIONS: dict[str, tuple[Callable[..., float], int, int | None]] = {
    # name: function, fewest and most arguments (None: any number)
    "sin": (math.sin, 1, 1),
    "cos": (math.cos, 1, 1),
    "tan": (math.tan, 1, 1),
    "exp": (math.exp, 1, 1),
    "log": (math.log, 1, 1),
    "sqrt": (math.sqrt, 1, 1),
    "abs": (abs, 1, 1),
    "min": (min, 2, None),
    "max": (max, 2, None),
    "step": (step, 1, 1),
    "smoothstep": (smoothstep, 3, 3),
}
WORDS = ("t", "pi", *FUNCTIONS)


def parse_formula(text: str, variables: Sequence[str] | None = None) -> Function:
    """The formula as a function of t [s], or of a sequence of the values of `variables`; `FormulaError` with the column where
    it cannot be read.

    The function itself raises `FormulaError` where the formula has no finite value.
    """
    evaluate = parsed(text, variables, Values)

    def formula(t: float) -> float:
        try:
            value = evaluate(t)
        except (ArithmeticError, ValueError) as error:
            raise FormulaError(f"'{text}' has no value at {place_of(t, variables)}: {error}") from error
        if not math.isfinite(value):
            raise FormulaError(f"'{text}' is not finite at {place_of(t, variables)}")
        return value

    return formula


class Algebra(Protocol):
    """What the parts of a formula become: functions of t, or of the values of its variables."""

    @staticmethod
    def constant(value: float) -> Function:
        """A number."""
        ...

    @staticmethod
    def variable(place: int | None) -> Function:
        """t, or one of several values."""
        ...

    @staticmethod
    def negative(of: Function) -> Function:
        """Its negative."""
        ...

    @staticmethod
    def binary(operator: str, left: Function, right: Function) -> Function:
        """One of + - * / ** of two."""
        ...

    @staticmethod
    def call(name: str, arguments: Sequence[Function]) -> Function:
        """One of `FUNCTIONS`."""
        ...


def parsed(text: str, variables: Sequence[str] | None, algebra: type[Algebra]) -> Function:
    """What a formula of t, or of these variables, becomes in an algebra; `FormulaError` where it cannot be read."""
    if len(text) > MAX_LENGTH:
        raise FormulaError(f"has {len(text)} characters, more than {MAX_LENGTH}", MAX_LENGTH, "use keyframes or a file")
    return _Parser(text, variables, algebra).parse()


class _Parser:
    """One pass over the tokens (kind, text, column) of a formula; every method returns a function of t."""

    def __init__(self, text: str, variables: Sequence[str] | None, algebra: type[Algebra]):
        self.tokens = _tokens(text)
        self.variables, self.algebra = variables, algebra
        self.next = 0
        self.depth = 0

    def parse(self) -> Function:
        value = self.sum()
        kind, text, column = self.tokens[self.next]
        if kind != "end":
            raise FormulaError(f"expected an operator, found '{text}'", column)
        return value

    def take(self, *texts: str) -> str | None:
        """The next token's text, consumed, if it is one of these operators."""
        kind, text, _ = self.tokens[self.next]
        if kind == "sign" and text in texts:
            self.next += 1
            return text
        return None

    def expect(self, text: str) -> None:
        if self.take(text) is None:
            kind, found, column = self.tokens[self.next]
            raise FormulaError(f"expected '{text}', found {_shown(kind, found)}", column)

    def sum(self) -> Function:
        value = self.product()
        while operator := self.take("+", "-"):
            value = self.algebra.binary(operator, value, self.product())
        return value

    def product(self) -> Function:
        value = self.sign()
        while operator := self.take("*", "/"):
            value = self.algebra.binary(operator, value, self.sign())
        return value

    def sign(self) -> Function:
        self.depth += 1  # every recursion of the grammar passes here
        if self.depth > MAX_DEPTH:
            raise FormulaError("is nested too deeply", self.tokens[self.next][2])
        if operator := self.take("+", "-"):
            operand = self.sign()
            value = operand if operator == "+" else self.algebra.negative(operand)
        else:
            value = self.power()
        self.depth -= 1
        return value

    def power(self) -> Function:
        base = self.atom()
        return self.algebra.binary("**", base, self.sign()) if self.take("**") else base

    def atom(self) -> Function:
        kind, text, column = self.tokens[self.next]
        if self.take("("):
            value = self.sum()
            self.expect(")")
            return value
        self.next += 1
        if kind == "number":
            return self.algebra.constant(float(text))
        if kind == "name":
            return self.name(text, column)
        raise FormulaError(f"expected a number, t, a function or '(', found {_shown(kind, text)}", column)

    def name(self, text: str, column: int) -> Function:
        if text == "t" and self.variables is None:
            return self.algebra.variable(None)
        if self.variables is not None and text in self.variables:
            return self.algebra.variable(list(self.variables).index(text))
        if text == "pi":
            return self.algebra.constant(math.pi)
        if text not in FUNCTIONS:
            words = WORDS if self.variables is None else (*self.variables, *WORDS[1:])
            remedy = did_you_mean(text, words) or f"known are {', '.join(words)}"
            raise FormulaError(f"unknown name '{text}'", column, remedy)
        _, fewest, most = FUNCTIONS[text]
        self.expect("(")
        arguments = [self.sum()]
        while self.take(","):
            arguments.append(self.sum())
        self.expect(")")
        if len(arguments) < fewest or (most is not None and len(arguments) > most):
            wanted = str(fewest) if most == fewest else f"at least {fewest}"
            raise FormulaError(f"{text} takes {wanted} argument(s), not {len(arguments)}", column)
        return self.algebra.call(text, arguments)


def place_of(at: float | Sequence[float], variables: Sequence[str] | None) -> str:
    """The values at which a formula was asked."""
    if variables is None:
        return f"t = {at:g}"
    return ", ".join(f"{name} = {value:g}" for name, value in zip(variables, at, strict=True))


class Values:
    """Numbers."""

    @staticmethod
    def constant(value: float) -> Function:
        """A number."""
        return lambda t: value

    @staticmethod
    def variable(place: int | None) -> Function:
        """t, or one of several values."""
        return (lambda t: t) if place is None else (lambda values: float(values[place]))

    @staticmethod
    def negative(of: Function) -> Function:
        """Its negative."""
        return lambda t: -of(t)

    @staticmethod
    def binary(operator: str, left: Function, right: Function) -> Function:
        """One of + - * / ** of two."""
        if operator == "+":
            return lambda t: left(t) + right(t)
        if operator == "-":
            return lambda t: left(t) - right(t)
        if operator == "*":
            return lambda t: left(t) * right(t)
        if operator == "/":
            return lambda t: left(t) / right(t)
        return lambda t: math.pow(left(t), right(t))  # not `**`, which turns complex for negative bases

    @staticmethod
    def call(name: str, arguments: Sequence[Function]) -> Function:
        """One of `FUNCTIONS`."""
        function = FUNCTIONS[name][0]
        return lambda t: float(function(*(argument(t) for argument in arguments)))


def _tokens(text: str) -> list[tuple[str, str, int]]:
    tokens = []
    position = 0
    end = len(text.rstrip())
    while position < end:
        match = TOKEN.match(text, position)
        if match is None:
            column = position + len(text[position:]) - len(text[position:].lstrip()) + 1
            remedy = "a power is written **" if text[column - 1] == "^" else ""
            raise FormulaError(f"unexpected character '{text[column - 1]}'", column, remedy)
        kind = str(match.lastgroup)
        tokens.append((kind, match[kind], match.start(kind) + 1))
        position = match.end()
    return [*tokens, ("end", "", end + 1)]


def _shown(kind: str, text: str) -> str:
    return "the end" if kind == "end" else f"'{text}'"

"""`NamedFormula`: a formula of several named values, as a function of a sequence of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from abd.scene.formula import Function, parse_formula


@dataclass(frozen=True)
class NamedFormula:
    """A formula of named values; equal ones compare equal, and the text and the names say all there is to them."""

    source: str
    names: tuple[str, ...]

    @cached_property
    def _formula(self) -> Function:
        return parse_formula(self.source, self.names)

    def __call__(self, values: Sequence[float]) -> float:
        return self._formula(values)

    def __getstate__(self) -> dict:
        return {"source": self.source, "names": self.names}

"""`NamedFormula`: a formula of several named values, as a function of a sequence of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from abd.joints.measures.slopes import differences
from abd.scene.schema.formulas.formula import FormulaError, Function, parse_formula
from abd.scene.schema.formulas.formula_slopes import parse_gradient


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

    @cached_property
    def _gradient(self) -> Function:
        return parse_gradient(self.source, self.names)

    def gradient(self, values: Sequence[float]) -> np.ndarray:
        """Its derivatives (k,), exact, at values (k,); where one is infinite, as that of a root at 0, by differences."""
        try:
            return self._gradient(values)
        except FormulaError:
            return differences(self, values)

    def __getstate__(self) -> dict:
        return {"source": self.source, "names": self.names}

"""`SolverABD`: a solver for Newton's models with Newton's ``step``, so that one changed line selects it::

    solver = abd.newton.SolverABD(model)  # instead of newton.solvers.SolverXPBD(model)

`newton` is imported on first access to the class.
"""

from __future__ import annotations

__all__ = ["SolverABD"]


def __getattr__(name: str):
    if name not in __all__:
        raise AttributeError(f"module 'abd.newton' has no attribute '{name}'")
    from abd.newton.solver import SolverABD

    globals()[name] = SolverABD
    return SolverABD

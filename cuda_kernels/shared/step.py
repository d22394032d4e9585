"""Starts of bodies in a step, and constants of Newton's method."""

STAY, WITH_FORCES, WITHOUT_FORCES = range(3)
"""Start of a body in a step (`abd.backends.recorded.start`)."""

LOOSEST = 1e-2
"""Largest relative tolerance of a linear solve that does not decide on convergence."""
FORCING_SCALE = 0.9
"""Factor on the forcing term (`cuda_kernels.step.newton`)."""
SAFEGUARD = 0.1
"""Forcing term of the last iteration above which the next one must not decrease quickly."""
ROUNDING_SPEED = 1e-4
"""Speed of a full step, over Newton's tolerance, below which residual forces are rounding."""
BOUND_GROWTH = 1.5
"""Factor on the bound of the residual after an iteration that met the tolerance of speeds alone."""

TOO_SOFT, TOO_STIFF = 0.8, 1.3
"""Change of the energy over the predicted one: below the first the model is too soft, above the second too stiff."""
BLOCKED = 0.2
"""Safe step below which contacts stopped a step almost at once."""
REDUCTION = 0.25
"""Factor on the weight of the bound of curvature after a step with a model that was too stiff."""
LARGEST_STRETCH = 10.0
"""Largest stretch of a direction."""
NEGLIGIBLE = 0.01
"""Largest weight of the bound of curvature that does not shorten a step."""

ROUNDING = 1e-15
"""Increase of the energy, over the size of its terms, that counts as rounding."""
DOUBTFUL = 1e-9
"""Change of the energy, over the size of its terms, that may be rounding."""
HALVINGS = 40
"""Largest number of halvings of a line search."""

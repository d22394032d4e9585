"""Constants of distances, collision detection and friction."""

PARALLEL = 1e-20
"""Squared sine below which two edges count as parallel, or a triangle as degenerate."""
TIE = 1e-12
"""Tolerance of the weights of a point next to a triangle that counts as over its inside.

A point over the edge between two triangles, up to rounding, is assigned to a face, whose normal does not depend on rounding.
"""
TRANSIENT = 0.05
"""Smallest ratio of force times edge length to a body's inertia for which the curvature of the distance counts."""
SMALLEST_SQUARED_SINE = 1e-3
"""Lower bound of the squared sine between two edges in that curvature."""

STILL = 1e-13
"""Approach of two bodies on a trial path, over their activation distance, up to which it is rounding."""

CORE = 0.05
"""Weight of the core of a barrier (`abd.potentials.barrier`)."""
FORCE_SHARE = 10.0
"""Force of a pair relative to the force that gives its reduced mass the reference acceleration."""

FINAL_FRACTION = 0.2
"""Fraction of the initial gap at which the advancement ends."""
REMAINING_FRACTION = 0.19
"""Fraction of the current gap after an advance; below `FINAL_FRACTION`, so that rounding does not cause another advance."""
WITHIN = 0.9
"""Gap, over the activation distance, at which the advancement of a Newton step ends: an active contact stops the bodies."""
STRAINED = 0.75
"""Strain along the path beyond which the frame of the second body is not used."""
UNBOUNDED_BEND = 1e100
"""Bend in such a frame [m]."""
MAX_REPEATED_ADVANCES = 4096
"""Largest number of advances between two states; small gaps and rotating bodies take hundreds."""
CANCELLATION = 16.0 * 2.0**-52
"""Relative error bound of terms with cancellation: 16 units of rounding."""

SLIDE, ROLL, SPIN = range(3)
"""Motion that a lagged contact resists."""
SLOW = 1e-5
"""Rotation per step [rad] below which arcs of slips are chords."""
OVER = 1e-9
"""Cosine and sine of a rotation about n below which a body has turned over and the rotation is undefined."""
STEEP = 0.5
"""Fraction of a share that must be in the new tangent plane for the share to keep its size."""

"""Sweeps: many runs of a scene with different parameters, side by side, and their results as one table."""

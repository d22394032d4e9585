"""Sweeps: parallel runs of a scene with different parameters, and a table of their results."""

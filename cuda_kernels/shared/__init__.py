"""Enums, slots and constants of the definitions (`abd`) and the kernels: plain numbers, without imports of either.

Kernels use integers directly, and real numbers as ``wp.float64``.
"""

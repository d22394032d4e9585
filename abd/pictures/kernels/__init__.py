"""Kernels of the rasterizer on the CPU: `cover` (visible item of every sample) and `shade` (its light)."""

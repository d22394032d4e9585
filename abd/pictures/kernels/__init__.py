"""Kernels of the rasterizer, which run on the processor: `cover` (what every sample shows) and `shade` (its light)."""

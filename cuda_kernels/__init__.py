"""Leaf mathematics on the device: Warp kernels that run on the processor and on CUDA from one source.

One file per concept, mirroring ``abd/potentials`` and ``abd/contact``. Knows Warp and NumPy, never `abd`.
Conventions: float64 for everything that touches positions; kernels take ``first``, the index of their first item, so
that a launch can be cut into slices; every sum runs in a fixed order. ``LOADED_FOR`` names the kind of device, "cpu" or
"cuda", that alone runs a module outside of tests, or "resident": devices on which whole iterations are recorded.
"""

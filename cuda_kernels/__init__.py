"""Leaf mathematics on the device: Warp kernels that run on the processor and on CUDA from one source.

One file per concept, mirroring ``abd/potentials`` and ``abd/contact``. Knows Warp and NumPy, never `abd`.
Conventions: float64 for everything that touches positions; kernels take ``first``, the index of their first item, so
that a launch can be cut into slices; every sum runs in a fixed order. ``LOADED_FOR`` says what has to be there for a module
to be launched, outside of tests: "cpu" or "cuda", the kind of device;
"contact", bodies that may touch; "friction"; "joints".
"""

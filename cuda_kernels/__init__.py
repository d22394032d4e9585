"""Warp kernels that run on the CPU and on CUDA from one source.

One file per concept, mirroring ``abd/potentials`` and ``abd/contact``; imports Warp and NumPy only, not `abd`. ``shared`` has the
enums, slots and constants that `abd` uses too, and imports neither. Conventions: float64 for all quantities that depend on
positions; kernels take ``first``, the index of their first item, so that a launch can be divided into slices; every sum runs in a
fixed order. ``LOADED_FOR`` lists the conditions under which a module is used: "cpu" or "cuda", the kind of device; "contact",
bodies that may touch; "friction"; "joints".
"""

"""Kernels of the rasterizer, which run on the processor: `corners` (triangles in the picture), `cover` (what every sample shows),
`occlusion`, `shade`; `eye`, `look` and `sun` are what they know of lens, surfaces and light."""

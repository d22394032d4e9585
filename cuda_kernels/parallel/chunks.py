"""Items that one thread goes over where numbers of many items are brought together."""

CHUNK = 64
"""Items ``c across + k along`` of the chunk c (`cuda_kernels.step.figures`)."""

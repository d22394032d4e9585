"""`abd export`: a run in file formats of other programs; each has its own module, imported on demand."""

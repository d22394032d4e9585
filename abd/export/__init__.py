"""`abd export`: a run in file formats of other programs.

`formats` is the table of formats, `scenery` the drawn objects; each format has its own module, imported on demand.
"""

"""`abd export`: a run as a file of other programs. `formats` is the table of formats, `scenery` what all of them draw; each
format has a file of its own, which is imported on demand."""

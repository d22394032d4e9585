"""Pictures, films and views of runs and scenes: what there is to draw (`cast`, `shapes`, `symbols`), from where it is seen
(`camera`), and the rasterizer that draws it on the processor (`rasterizer`, `films`)."""

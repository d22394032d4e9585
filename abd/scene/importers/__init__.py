"""Importers of other formats: one module or package per format, listed in `abd.scene.importers.formats`."""

"""Other programs' formats to scenes: one room per format, listed in `abd.scene.importers.formats`."""

"""Runs, scenes and simulations in a browser, by viser: the picture (`stage`), numbers and plots (`panels`), recorded runs
(`player`), running ones (`live`), and replays in one file (`page`)."""

"""Runs, scenes and simulations in a browser, with viser.

`stage` shows the bodies, `panels` numbers and plots, `player` recorded runs, `live` running ones.
"""

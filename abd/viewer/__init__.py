"""Runs, scenes and simulations in a browser, with viser."""

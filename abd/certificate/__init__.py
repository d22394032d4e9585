"""Certificates: independent check that a recorded run is free of intersections."""

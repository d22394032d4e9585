"""Certificates: whether a recorded run is free of intersections, judged by other code than what made it."""

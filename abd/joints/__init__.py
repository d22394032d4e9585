"""Joints: what their types are (`types`), the rows that act on bodies (`rows`), coordinates, assembly, and users' own."""

"""Joints: their types (`types`), the rows that act on bodies (`rows`), coordinates, assembly, and types of users (`custom`)."""

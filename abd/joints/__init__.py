"""Joints: types (`types`), rows (`rows`), coordinates, assembly (`closure`) and user-defined types (`custom`)."""

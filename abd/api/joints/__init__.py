"""Views and control of joints and couplings of a running simulation."""

"""Views of joints and couplings of a running simulation, and joint types of a user."""

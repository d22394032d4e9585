"""Joints and couplings as users hold them: views, what is read of them, and what changes them."""

"""Commands of `abd`, one file each. `abd.cli` registers them; heavy libraries are imported when a command runs."""

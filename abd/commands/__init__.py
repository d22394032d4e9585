"""Commands of `abd`, one file each: its arguments (`add`) and what it does. `abd.cli` puts them together; nothing heavy is
imported before a command runs."""

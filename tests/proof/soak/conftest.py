"""The soak: its folder is on the path."""

"""Formats of a resolution, for people and for other programs. Each module renders one format and prints nothing."""

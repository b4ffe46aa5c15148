"""Reads one wheel, sdist or egg into a record, never running any of it. It takes a source of bytes, not a URL."""

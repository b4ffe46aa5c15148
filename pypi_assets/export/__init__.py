"""Writes what is known of pinned distributions as other tools read it: which distribution a module is from.

A format is one module with a `render` function, and an entry in `formats.py`.
"""

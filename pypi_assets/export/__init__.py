"""Writes what is known of pinned distributions as other tools read it: which distribution a module is from.

A format is a function in `formats.py`, with an entry there and a sentence in `formats.py`.
"""

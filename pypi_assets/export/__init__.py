"""Write data about pinned distributions in the formats of other tools, such as the distribution of each module.

A format is a function in `formats.py`, with an entry in `FORMATS` and a sentence in `summaries.py`.
"""

"""What follows from events and pages: the history of each file, and the rows that hold it.

`file_history` is a pure function. `recompute` brings the rows in line with it, and `visits` records what led to it.
Live and yanked intervals are written nowhere else.
"""

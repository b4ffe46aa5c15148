"""How a reader process is contained: what it loses for ever before it sees the first byte of a file.

`layers.py` puts the layers together. Python has no functions for them. Two bindings on PyPI have: one covers Landlock
alone, the other needs libseccomp on each machine. So the few calls are made by ctypes.
"""

"""Contain a reader process: remove its rights permanently before it reads the first byte of a file.

`layers.py` combines the layers. Python has no functions for the system calls, so ctypes makes them. The two bindings on
PyPI do not fit: one covers only Landlock, and the other needs libseccomp on each machine.
"""

"""Questions about an index, one file for each, and the snapshots that answer them.

`question.py` declares a question, and `snapshot.py` defines the protocol for answering it. The command line and the
service derive commands and routes from the declarations, so this package contains no options, requests or pages.
"""

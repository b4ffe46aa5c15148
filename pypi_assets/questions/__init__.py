"""Questions about an index: one file for each, and the snapshots that answer them.

`question.py` declares a question, `snapshot.py` the protocol that answers it. The command line and the service derive
commands and routes from the declarations, so nothing here knows of options, requests or pages.
"""

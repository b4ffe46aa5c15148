"""What can be asked about an index: one file for each question, and the snapshots that answer it.

`question.py` declares a question, `snapshot.py` what it is asked of. The command line and the service make commands and
routes of the declarations. Nothing here knows of options, requests or pages.
"""

"""The database: what the index said, what follows from it, and what is still to be done. All SQL lives here."""

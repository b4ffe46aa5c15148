"""Work out which modules each build backend installs, from its settings and defaults. Each has one module here."""

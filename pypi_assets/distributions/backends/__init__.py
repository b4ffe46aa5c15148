"""What each build backend installs, as its settings and its defaults have it; one file for each."""

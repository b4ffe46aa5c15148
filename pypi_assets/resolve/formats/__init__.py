"""What was chosen, as people and other programs read it: a module for each format. None of them prints."""

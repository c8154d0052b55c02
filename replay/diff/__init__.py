"""Where two journals part, and what is different between two states."""

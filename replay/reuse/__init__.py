"""Where the hits went: what the tree had, which event took it, and how it could have been kept."""

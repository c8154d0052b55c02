"""From an incident to few commands that break the same law, to a test of them, and to another revision's answer."""

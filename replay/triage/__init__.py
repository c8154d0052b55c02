"""From the journals of N ranks to the first wrong event of each, what led to it, and what to look at next."""

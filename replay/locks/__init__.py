"""Who holds which window, since when, and what that keeps from being evicted."""

"""What was true, and why: states rebuilt from a journal with the same `evolve` that served.

Rule: reads journals and never writes one. Imports `journal` and `cache`.
"""

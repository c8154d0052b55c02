"""What was true, and why: states rebuilt from a journal with the same `evolve` that served.

Rule: a journal is read and stays as it is; what is written is a new file. Imports `journal` and `cache`.
"""

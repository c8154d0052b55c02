"""What is true now, and the rules: the state of one rank, its deciders and its one `evolve`.

Rule: no clock, no chance, no policy below the shell; `jax` is imported by `cache.pool` alone.
Imports `journal`, and nothing else of ours.
"""

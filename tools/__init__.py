"""The doors: command line, server, drivers, benchmarks.

Rule: the only package that prints, reads the environment or picks the clock. Imports all the others.
"""

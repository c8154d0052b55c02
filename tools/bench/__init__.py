"""Benchmarks of the bars that the design promises, each with its conditions and its figure.

Rule: a figure is printed beside the machine, the conditions and the bar it is held against.
"""

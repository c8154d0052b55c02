"""A run as one page to attach to a ticket: charts, and every moment that was, folded in the browser.

Rule: what a page shows comes from states that `evolve` made; the browser only writes down what Python says has changed.
"""

"""What happened, in order, durably: the vocabulary of events and the files that hold them.

Rule: imports nothing of ours. Whoever can read a journal needs only this package.
"""

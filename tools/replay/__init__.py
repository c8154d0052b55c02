"""`radixledger replay`: one module for each question that can be put to a journal.

Rule: importing it imports nothing; `command` holds the table of the subcommands.
"""

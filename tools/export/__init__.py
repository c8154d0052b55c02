"""Journals in the formats of others: `radixledger export`."""

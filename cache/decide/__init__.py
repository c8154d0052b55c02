"""One function per command: checks everything that can fail, then yields the events that were decided. Reads, never writes."""

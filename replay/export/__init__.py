"""A journal for other programs: traces, the events of routers, copies without tokens."""

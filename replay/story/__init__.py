"""What happened to one thing, from the first event to the last: a page, a node, a request."""

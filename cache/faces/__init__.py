"""The calls of servers, one class for each: allocators, rows and trees, which route gets which of them, and what an idle server may rely on."""

"""The first place in a journal where something is so: by halves where that will do, behind every command where not."""

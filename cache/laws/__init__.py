"""What holds between any two commands, and what an event has to keep: one function per law, with a sentence for a name."""

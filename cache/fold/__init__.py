"""What an event does to a state: one function per event, by what it changes. The door is `evolve`, whose table names them all."""

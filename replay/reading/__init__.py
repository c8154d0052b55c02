"""A journal read backwards: from what was decided to what had been asked, as commands of a schedule.

`recorded` reads a journal, `parting` tells commands apart, `readings` knows how each is read. Imports `schedule`, never the
other way round.
"""

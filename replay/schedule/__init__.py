"""Schedules: the commands behind a journal, as data that can be cut, written down and performed again.

`recorded` reads them off a journal, `stage` performs them on a rank. Imports `journal` and `cache`.
"""

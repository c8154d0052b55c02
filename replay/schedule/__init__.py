"""Schedules: what a server asked for, as data that can be cut, written down and performed again.

`commands` is the data, `stage` performs it on a rank, `elsewhere` on a rank of another revision, where nothing but this room
comes along. Reading a journal into commands is another room's (`reading`).
"""

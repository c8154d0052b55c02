"""What would have been: the recorded requests of a run, sent through another configuration of the cache.

`requests` takes a schedule out of a journal, `schedule` keeps it, `redrive` sends it through a cache, `meter` counts on both
sides, `bound` tells what no order of victims can pass, `compare` puts runs beside each other. Rule: whatever the
recorded run cannot tell is made up in one place (`content`), and whatever is made up is called an estimate (J17).
"""

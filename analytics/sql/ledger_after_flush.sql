-- After a flush: everything is available again, and nobody owns or maps anything (R165, R166, A36).
--
-- Asked of every ledger that says `post_flush`, and of every other one before which the last thing that happened to
-- pages was a flush. One that says `pre_flush` has to be idle (R161).
-- kind: check
WITH moved AS (
    SELECT DISTINCT run, rank, seq AS moved_seq FROM pages
), flushed AS (
    SELECT run, rank, seq AS flushed_seq FROM events WHERE event = 'Flushed'
), placed AS (
    SELECT ledger_pools.*, mapping_nonzero_count, moved_seq, flushed_seq
    FROM ledger_pools
    JOIN (SELECT run, rank, seq, mapping_nonzero_count FROM ledgers) USING (run, rank, seq)
    ASOF LEFT JOIN moved
        ON ledger_pools.run = moved.run AND ledger_pools.rank = moved.rank AND ledger_pools.seq > moved_seq
    ASOF LEFT JOIN flushed
        ON ledger_pools.run = flushed.run AND ledger_pools.rank = flushed.rank AND ledger_pools.seq > flushed_seq
)
SELECT run, rank, epoch, seq, phase, idle, pool, capacity, available, tree_evictable, tree_protected,
    request_owned, pending_free, mapping_nonzero_count
FROM placed
WHERE ((phase = 'post_flush' OR flushed_seq >= coalesce(moved_seq, 0))
        AND (available <> capacity OR tree_evictable <> 0 OR tree_protected <> 0
            OR request_owned <> 0 OR pending_free <> 0 OR mapping_nonzero_count <> 0))
    OR (phase = 'pre_flush' AND NOT idle)
ORDER BY run, rank, seq, pool

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
    SELECT ledgers.*, phase = 'post_flush' OR coalesce(flushed_seq >= coalesce(moved_seq, 0), false) AS is_after
    FROM ledgers
    ASOF LEFT JOIN moved
        ON ledgers.run = moved.run AND ledgers.rank = moved.rank AND ledgers.seq > moved_seq
    ASOF LEFT JOIN flushed
        ON ledgers.run = flushed.run AND ledgers.rank = flushed.rank AND ledgers.seq > flushed_seq
)
SELECT
    run, rank, epoch, seq, phase, idle,
    full_capacity, full_available,
    full_tree_evictable + full_tree_protected AS full_tree,
    full_request_owned,
    full_pending_free,
    swa_capacity, swa_available,
    swa_tree_evictable + swa_tree_protected AS swa_tree,
    swa_request_owned,
    swa_pending_free,
    host_capacity, host_available,
    mapping_nonzero_count
FROM placed
WHERE (phase = 'pre_flush' AND NOT idle)
    OR (is_after AND (
        full_available <> full_capacity OR full_tree <> 0 OR full_request_owned <> 0 OR full_pending_free <> 0
        OR swa_available <> swa_capacity OR swa_tree <> 0 OR swa_request_owned <> 0 OR swa_pending_free <> 0
        OR host_available <> host_capacity OR mapping_nonzero_count <> 0
    ))
ORDER BY run, rank, seq

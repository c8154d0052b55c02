-- Ledger rows by pool: the terms of the identities, in tokens, one row for each ledger and pool.
--
-- Those of `recurrent`, where a rank has states, are slots: a page of that pool is one.
-- kind: view 2
SELECT
    run, rank, epoch, seq, step, phase, idle, 'full' AS pool,
    full_capacity AS capacity,
    full_available AS available,
    full_tree_evictable AS tree_evictable,
    full_tree_protected AS tree_protected,
    full_request_owned AS request_owned,
    full_reserved_page_slack AS page_slack,
    full_pending_free AS pending_free,
    full_in_flight AS in_flight
FROM ledgers
UNION ALL
SELECT
    run, rank, epoch, seq, step, phase, idle, 'swa',
    swa_capacity,
    swa_available,
    swa_tree_evictable,
    swa_tree_protected,
    swa_request_owned,
    swa_reserved_page_slack,
    swa_pending_free,
    0
FROM ledgers
UNION ALL
SELECT
    run, rank, epoch, seq, step, phase, idle, 'host',
    host_capacity,
    host_available,
    host_tree_evictable,
    host_tree_protected + host_tree_mirrored,
    0,
    0,
    0,
    host_in_flight
FROM ledgers
WHERE host_capacity > 0
UNION ALL
SELECT
    run, rank, epoch, seq, step, phase, idle, 'recurrent',
    recurrent_capacity,
    recurrent_available,
    recurrent_tree_evictable,
    recurrent_tree_protected,
    recurrent_request_running + recurrent_request_track,
    0,
    0,
    0
FROM ledgers
WHERE recurrent_capacity > 0

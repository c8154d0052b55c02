-- The ledger identity: available + evictable + protected + request owned = capacity, per pool and rank (R156).
--
-- Between idle moments the slack of partly filled pages and what waits in an open free group count too (A1, A3). An
-- idle rank has neither, nor a request; only the legacy route may have slack (A2).
-- kind: check
SELECT
    run, rank, epoch, seq, phase, pool, idle, capacity,
    available + tree_evictable + tree_protected + request_owned + page_slack + pending_free AS accounted,
    available, tree_evictable, tree_protected, request_owned, page_slack, pending_free
FROM ledger_pools
LEFT JOIN (SELECT run, rank, epoch, route FROM runs) USING (run, rank, epoch)
WHERE capacity <> accounted
    OR (idle AND (request_owned <> 0 OR pending_free <> 0))
    OR (idle AND page_slack <> 0 AND route IS DISTINCT FROM 'legacy')
ORDER BY run, rank, seq, pool

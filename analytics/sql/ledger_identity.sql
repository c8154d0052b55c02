-- The ledger identity: available + evictable + protected + request owned = capacity, per pool and rank (R156).
--
-- What copies between device and host are writing counts too. While requests run, the slack of partly filled pages counts too, what waits in an open free group, and what callers
-- without a row hold (A1, A3). An idle rank has none of these; only the legacy route may have slack (A2).
-- Busy ranks whose journal begins at a snapshot are not asked.
-- kind: check
WITH asked AS (
    SELECT ledger_pools.*, route, page_size
    FROM ledger_pools
    LEFT JOIN (SELECT run, rank, epoch, route, page_size FROM runs) USING (run, rank, epoch)
), terms AS (
    SELECT asked.*, CASE WHEN idle THEN 0 ELSE coalesce(pages_out, 0) * CASE asked.pool WHEN 'recurrent' THEN 1 ELSE page_size END END AS outside
    FROM asked
    ASOF LEFT JOIN outside_pages
        ON asked.run = outside_pages.run AND asked.rank = outside_pages.rank AND asked.epoch = outside_pages.epoch
        AND asked.pool = outside_pages.pool AND asked.seq > outside_pages.seq
)
SELECT
    run, rank, epoch, seq, phase, pool, idle, capacity,
    available + tree_evictable + tree_protected + request_owned + page_slack + pending_free + in_flight + outside AS accounted,
    available, tree_evictable, tree_protected, request_owned, page_slack, pending_free, in_flight, outside
FROM terms
WHERE (capacity <> accounted AND (idle OR page_size IS NOT NULL))
    OR (idle AND (request_owned <> 0 OR pending_free <> 0 OR in_flight <> 0))
    OR (idle AND page_slack <> 0 AND route IS DISTINCT FROM 'legacy')
ORDER BY run, rank, seq, pool

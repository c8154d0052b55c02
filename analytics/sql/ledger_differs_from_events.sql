-- Ledgers that events contradict: the pages that the events took and gave back leave other pages available than the ledger says.
--
-- Both are of the same moment. Ranks whose journal begins at a snapshot, or misses events, are not asked.
-- kind: check
WITH taken AS (
    SELECT
        run, rank, epoch, pool::VARCHAR AS pool, seq,
        sum((from_kind = 'free')::INTEGER - (to_kind = 'free')::INTEGER) AS delta
    FROM pages
    WHERE from_kind = 'free' OR to_kind = 'free'
    GROUP BY ALL
), running AS (
    SELECT run, rank, epoch, pool, seq AS taken_seq, sum(delta) OVER (PARTITION BY run, rank, epoch, pool ORDER BY seq) AS pages_out
    FROM taken
), asked AS (
    SELECT run, rank, epoch, seq, phase, pool, capacity, available, page_size
    FROM ledger_pools
    JOIN (
        SELECT run, rank, epoch, page_size FROM runs JOIN books USING (run, rank, epoch)
        WHERE runs.opened_seq IS NOT NULL AND gaps IS NULL
    ) AS whole USING (run, rank, epoch)
)
SELECT
    asked.run, asked.rank, asked.epoch, asked.seq, phase, asked.pool, available,
    capacity - coalesce(pages_out, 0)::BIGINT * CASE asked.pool WHEN 'recurrent' THEN 1 ELSE page_size END AS available_by_events
FROM asked
ASOF LEFT JOIN running
    ON asked.run = running.run AND asked.rank = running.rank AND asked.epoch = running.epoch
    AND asked.pool = running.pool AND asked.seq > taken_seq
WHERE available <> available_by_events
ORDER BY asked.run, asked.rank, asked.seq, asked.pool

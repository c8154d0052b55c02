-- Unequal pairs: a baseline and the unified route, to be compared, have pools of different capacity (R164, A37).
--
-- Runs of different routes with the same label `pair` are a pair; runs without that label are one with each other.
-- kind: check
WITH built AS (
    SELECT DISTINCT
        run, rank, pool, capacity, route,
        coalesce(labels['pair'], '') AS pair
    FROM ledger_pools
    JOIN runs USING (run, rank, epoch)
)
SELECT pair, rank, pool, baseline.run AS run, baseline.route, baseline.capacity,
    other.run AS other_run, other.route AS other_route, other.capacity AS other_capacity
FROM built AS baseline
JOIN built AS other USING (pair, rank, pool)
WHERE baseline.route <> 'unified' AND other.route = 'unified' AND baseline.capacity <> other.capacity
ORDER BY pair, rank, pool, run, other_run

-- Locks that differ from the window: a receipt ends before the window does, goes on behind it, or tells of other tombstones (R111, R112, R119).
--
-- The window ends in the node in which it is full, counted from the locked one upwards; where it reaches the root, there
-- is no boundary. Asked of the unified route.
-- kind: check
WITH RECURSIVE locked AS (
    SELECT run, rank, epoch, seq, node, boundary, coalesce(marked, 0) AS marked, coalesce(skipped, 0) AS skipped, request, cause, page_size, window_need
    FROM lock_changes
    JOIN (SELECT run, rank, epoch, page_size, window_need FROM runs WHERE route = 'unified' AND opened_seq IS NOT NULL AND window_need > 0) AS judged
        USING (run, rank, epoch)
    WHERE event = 'Locked'
), states AS MATERIALIZED (
    FROM node_states
), windows AS (
    SELECT locked.*, node AS reached, 0::HUGEINT AS tokens, 0 AS tombstones, 0 AS last_node FROM locked
    UNION ALL
    SELECT
        windows.* EXCLUDE (reached, tokens, tombstones, last_node),
        states.parent,
        tokens + full_pages * page_size,
        tombstones + (swa_pages = 0)::INTEGER,
        states.node
    FROM windows
    JOIN states
        ON states.run = windows.run AND states.rank = windows.rank AND states.epoch = windows.epoch
        AND states.node = windows.reached
        AND states.seq <= windows.seq AND (until_seq IS NULL OR until_seq > windows.seq)
    WHERE reached > 0 AND tokens < window_need
), ended AS (
    SELECT *, tokens >= window_need AS is_full
    FROM windows
    WHERE tokens >= window_need OR reached = 0
)
SELECT
    run, rank, epoch, seq, node, request, boundary, marked,
    CASE WHEN is_full THEN last_node ELSE 0 END AS window_ends_in,
    skipped, tombstones, cause
FROM ended
WHERE is_full <> (boundary <> 0) OR (marked <> 0 AND marked <> window_ends_in) OR skipped <> tombstones
ORDER BY run, rank, seq

-- Locked windows taken: SWA pages left a node that a receipt shields: one within the last window of its path (R102, R111).
-- kind: check
WITH RECURSIVE taken AS (
    SELECT run, rank, epoch, seq, event, node, cause, end_pages, page_size, window_need
    FROM node_changes
    JOIN (SELECT run, rank, epoch, page_size, window_need FROM runs WHERE route = 'unified' AND window_need > 0) AS judged USING (run, rank, epoch)
    JOIN node_ends USING (run, rank, epoch, node)
    WHERE event = 'Tombstoned'
), states AS MATERIALIZED (
    FROM node_states
), paths AS (
    SELECT taken.*, locks.node AS reached, locks.node AS anchor, locks.request, locked_seq
    FROM taken
    JOIN locks USING (run, rank, epoch)
    JOIN node_ends AS anchored
        ON anchored.run = locks.run AND anchored.rank = locks.rank AND anchored.epoch = locks.epoch AND anchored.node = locks.node
    WHERE locked_seq < seq AND (unlocked_seq IS NULL OR unlocked_seq > seq)
        AND anchored.end_pages >= taken.end_pages
        AND (anchored.end_pages - taken.end_pages) * page_size < window_need
    UNION ALL
    SELECT paths.* EXCLUDE (reached, anchor, request, locked_seq), states.parent, anchor, request, locked_seq
    FROM paths
    JOIN states
        ON states.run = paths.run AND states.rank = paths.rank AND states.epoch = paths.epoch
        AND states.node = paths.reached
        AND states.seq <= paths.seq AND (until_seq IS NULL OR until_seq > paths.seq)
    WHERE paths.reached > 0 AND paths.reached <> paths.node
)
SELECT run, rank, epoch, seq, event, node, anchor, request, locked_seq, cause
FROM paths
WHERE reached = node
ORDER BY run, rank, seq

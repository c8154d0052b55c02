-- Nodes out of turn: what happened to a node cannot happen to what it was (R20, R84, R85, R100, R104).
--
-- A leaf leaves with all its pages, and without children; a tombstone is healed, as a whole; what SWA pressure leaves in
-- the tree has children or is held.
-- kind: check
WITH placed AS (
    SELECT
        changes.*,
        states.full_pages, states.swa_pages,
        states.swa_pages - swa_delta AS swa_before
    FROM node_changes AS changes
    JOIN node_states AS states USING (run, rank, epoch, node, seq)
    JOIN (SELECT run, rank, epoch FROM books WHERE opened_seq IS NOT NULL AND gaps IS NULL) AS whole USING (run, rank, epoch)
    WHERE event IN ('Removed', 'Tombstoned', 'Healed')
), counted AS (
    SELECT placed.*, coalesce(children, 0) AS children
    FROM placed
    ASOF LEFT JOIN child_counts
        ON placed.run = child_counts.run AND placed.rank = child_counts.rank AND placed.epoch = child_counts.epoch
        AND placed.node = child_counts.node AND placed.seq > child_counts.seq
), judged AS (
    SELECT
        *,
        CASE
            WHEN event = 'Removed' AND children > 0 THEN 'it has children'
            WHEN event = 'Removed' AND (full_pages <> 0 OR swa_pages <> 0) THEN 'it keeps pages'
            WHEN event = 'Tombstoned' AND swa_before = 0 THEN 'it is a tombstone'
            WHEN event = 'Tombstoned' AND cause = 'evict/swa_internal' AND children = 0 THEN 'it has no children'
            WHEN event = 'Healed' AND swa_before > 0 THEN 'it is live'
            WHEN event = 'Healed' AND swa_pages <> full_pages THEN 'it is healed in part'
        END AS fault
    FROM counted
)
SELECT run, rank, epoch, seq, event, node, fault, children, full_pages::BIGINT AS full_pages, swa_pages::BIGINT AS swa_pages, cause
FROM judged
WHERE fault IS NOT NULL
ORDER BY run, rank, seq

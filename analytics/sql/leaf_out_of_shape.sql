-- Leaves out of shape: an insert ended in a tombstone, or in a leaf that is longer than a window (R93, R95).
--
-- A lock pins whole nodes, so the last one of a path spans one window at most; a leaf that no window ends in is not made,
-- unless leaves are materialised (A15). Asked of what requests give the tree on the unified route.
-- kind: check
WITH leaves AS (
    SELECT leaf.*, page_size, window_tokens, tombstone_leaf
    FROM node_changes AS leaf
    JOIN (SELECT run, rank, epoch, page_size, window_tokens, tombstone_leaf FROM runs WHERE route = 'unified' AND window_tokens > 0) AS shaped
        USING (run, rank, epoch)
    WHERE event = 'Transferred' AND request <> 0 AND NOT EXISTS (
        SELECT 1
        FROM node_changes AS next
        WHERE next.run = leaf.run AND next.rank = leaf.rank AND next.seq = leaf.seq + 1
            AND next.event = 'Transferred' AND next.parent = leaf.node
    )
)
SELECT run, rank, epoch, seq, node, request, full_delta AS pages, swa_delta > 0 AS live, page_size, window_tokens, cause
FROM leaves
WHERE (swa_delta = 0 AND tombstone_leaf = 'veto')
    OR (swa_delta > 0 AND (full_delta - 1) * page_size >= window_tokens)
ORDER BY run, rank, seq

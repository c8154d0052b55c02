-- Age at eviction: how old nodes were, in steps, when they left the tree, and how many no match ever ended at (W28, W35).
-- kind: report
WITH removed AS (
    SELECT nodes.*, created.step AS created_step, gone.step AS removed_step,
        (run, rank, epoch, node) IN (SELECT (run, rank, epoch, node) FROM matches WHERE hit > 0) AS reused
    FROM nodes
    JOIN (SELECT run, rank, seq AS created_seq, step FROM node_changes WHERE event IN ('Transferred', 'Split')) AS created USING (run, rank, created_seq)
    JOIN (SELECT run, rank, seq AS removed_seq, step FROM node_changes WHERE event = 'Removed') AS gone USING (run, rank, removed_seq)
)
SELECT
    run, rank, removed_cause AS cause,
    count(*) AS nodes,
    count(*) FILTER (NOT reused) AS never_hit,
    median(removed_step - created_step) AS steps_median,
    quantile_cont(removed_step - created_step, 0.9) AS steps_p90,
    max(removed_step - created_step) AS steps_max
FROM removed
GROUP BY ALL
ORDER BY run, rank, nodes DESC

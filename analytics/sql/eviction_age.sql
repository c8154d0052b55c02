-- Age at eviction: how old nodes were, in steps, when they left the tree, and how many no match ever ended at (W28, W35).
-- kind: report
WITH removed AS (
    SELECT
        nodes.*,
        (run, rank, epoch, node) IN (SELECT (run, rank, epoch, node) FROM matches WHERE hit > 0) AS reused
    FROM nodes
    WHERE removed_seq IS NOT NULL
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
ORDER BY run, rank, nodes DESC, cause

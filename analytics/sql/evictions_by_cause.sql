-- Evictions by cause: how often the tree gave pages up, why, and how many of each pool.
-- kind: report
SELECT
    run, rank, cause, event,
    count(*) AS nodes,
    -sum(full_delta)::BIGINT AS full_pages,
    -sum(swa_delta)::BIGINT AS swa_pages
FROM node_changes
WHERE event IN ('Removed', 'Tombstoned', 'Demoted')
GROUP BY ALL
ORDER BY run, rank, nodes DESC, cause

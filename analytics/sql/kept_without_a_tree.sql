-- Kept without a tree: pages went to a node of the tree, and the rank's route has none (J22, R150).
--
-- On the chunk routes a request owns all that it computes; what is given to a node there can never be found again.
-- kind: check anywhere
SELECT
    run, rank, epoch, seq, event, cause, request, to_holder AS node, route,
    count(*) FILTER (pool = 'full') AS full_pages,
    count(*) FILTER (pool = 'swa') AS swa_pages
FROM pages
JOIN (SELECT run, rank, epoch, route FROM runs) USING (run, rank, epoch)
WHERE to_kind = 'tree' AND route IN ('chunk', 'swa_chunk')
GROUP BY ALL
ORDER BY run, rank, seq

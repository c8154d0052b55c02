-- One-sided allocations: pages of one pool were handed out without as many of the other to map them to (R45).
--
-- Asked where a rank has two pools, of growths and of what is handed out to nobody in particular.
-- kind: check anywhere
SELECT
    run, rank, epoch, seq, event, cause,
    count(*) FILTER (pool = 'full') AS full_taken,
    count(*) FILTER (pool = 'swa') AS swa_taken
FROM pages
JOIN (SELECT run, rank, epoch FROM runs WHERE swa_pages > 0) AS hybrid USING (run, rank, epoch)
WHERE from_kind = 'free' AND to_kind = 'request' AND (to_holder = 0 OR event = 'Extended')
GROUP BY ALL
HAVING full_taken <> swa_taken
ORDER BY run, rank, seq

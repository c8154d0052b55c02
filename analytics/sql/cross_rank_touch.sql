-- Touches across ranks: an event names a page, request or node that its own rank cannot have (J22, R27).
--
-- A page beyond the capacity of the rank's pool; a request that only another rank of the run admitted; a node that
-- only another rank made; a journal of one rank that says that it is another's.
-- kind: check
WITH whole AS (
    SELECT run, rank, epoch, opened_rank, opened_seq, full_pages, swa_pages, recurrent_slots, host_pages
    FROM runs
    WHERE opened_seq IS NOT NULL
), made AS (
    SELECT DISTINCT run, rank, node FROM node_changes
), admitted AS (
    SELECT DISTINCT run, rank, request FROM admissions
), named AS (
    SELECT run, rank, request, node, min(seq) AS seq, arg_min(event, seq) AS event
    FROM events
    JOIN whole USING (run, rank, epoch)
    WHERE request <> 0 OR node <> 0
    GROUP BY run, rank, request, node
)
SELECT run, rank, seq, event::VARCHAR AS event, pool || ' page ' || page || ' of ' || CASE pool WHEN 'full' THEN full_pages WHEN 'swa' THEN swa_pages WHEN 'recurrent' THEN recurrent_slots ELSE host_pages END AS touched
FROM pages
JOIN whole USING (run, rank, epoch)
WHERE page < 0 OR page > CASE pool WHEN 'full' THEN full_pages WHEN 'swa' THEN swa_pages WHEN 'recurrent' THEN recurrent_slots ELSE host_pages END
UNION ALL
SELECT run, rank, min(seq), arg_min(event, seq), 'request ' || request || ' of another rank'
FROM named
WHERE request <> 0
    AND (run, rank, request) NOT IN (FROM admitted)
    AND (run, request) IN (SELECT (run, request) FROM admitted)
GROUP BY run, rank, request
UNION ALL
SELECT run, rank, min(seq), arg_min(event, seq), 'node ' || node || ' of another rank'
FROM named
WHERE node <> 0
    AND (run, rank, node) NOT IN (FROM made)
    AND (run, node) IN (SELECT (run, node) FROM made)
GROUP BY run, rank, node
UNION ALL
SELECT run, rank, opened_seq, 'Opened', 'journal of rank ' || opened_rank
FROM whole
WHERE opened_rank <> rank
ORDER BY run, rank, seq

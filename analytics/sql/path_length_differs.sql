-- Path lengths that differ: an event names a node and says how many tokens its path has, and the path has others (R63, R128, R149).
--
-- Asked of matches, admissions, repointed rows and finished requests.
-- kind: check
WITH told AS (
    SELECT run, rank, epoch, seq, 'Matched' AS event, request, node, hit AS tokens FROM matches
    UNION ALL
    SELECT run, rank, epoch, seq, 'Admitted', request, node, prefix FROM admissions
    UNION ALL
    SELECT run, rank, epoch, seq, 'Repointed', request, node, protected FROM repointings
    UNION ALL
    SELECT run, rank, epoch, seq, event::VARCHAR, request, node, cached FROM endings WHERE event = 'Finished'
)
SELECT run, rank, epoch, seq, event, request, node, tokens, coalesce(end_pages, 0)::BIGINT * page_size AS path_tokens
FROM told
JOIN (SELECT run, rank, epoch, page_size FROM runs WHERE opened_seq IS NOT NULL) AS paged USING (run, rank, epoch)
LEFT JOIN node_ends USING (run, rank, epoch, node)
WHERE (node = 0 OR end_pages IS NOT NULL) AND tokens <> path_tokens
ORDER BY run, rank, seq

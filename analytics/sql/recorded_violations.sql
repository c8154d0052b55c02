-- Recorded violations: laws that the writer itself saw broken, and commands refused because a page was not the caller's.
-- kind: check
SELECT run, rank, epoch, seq, 'Violated' AS event, law AS what, detail, request, pool, pages, expected, found, since, cause
FROM violations
UNION ALL
SELECT run, rank, epoch, seq, 'Refused', reason, detail, request, pool, pages, expected, found, since, cause
FROM refusals
WHERE reason IN ('double_free', 'foreign_free')
ORDER BY run, rank, seq

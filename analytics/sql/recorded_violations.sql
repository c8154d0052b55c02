-- Recorded violations: laws that the writer itself saw broken while it went on; the pages concerned were not moved.
-- kind: check anywhere
SELECT run, rank, epoch, seq, law, detail, request, pool, pages, expected, found, since, cause
FROM violations
ORDER BY run, rank, seq

-- First divergence of two runs: the first event of each rank at which they differ in what happened, to whom and why.
--
-- Steps and times are not compared. NULL on one side: that run had ended (J24).
-- kind: report
-- set run RUN: the one run
-- set other RUN: the other run
WITH mine AS (
    SELECT rank, row_number() OVER (PARTITION BY rank ORDER BY seq) AS turn, seq, event, cause, request, node
    FROM events WHERE run = getvariable('run') AND event <> 'Opened'
), theirs AS (
    SELECT rank, row_number() OVER (PARTITION BY rank ORDER BY seq) AS turn, seq, event, cause, request, node
    FROM events WHERE run = getvariable('other') AND event <> 'Opened'
)
SELECT rank, mine.seq, mine.event, mine.cause, mine.request, mine.node,
    theirs.seq AS other_seq, theirs.event AS other_event, theirs.cause AS other_cause,
    theirs.request AS other_request, theirs.node AS other_node
FROM mine
FULL JOIN theirs USING (rank, turn)
WHERE (mine.event, mine.cause, mine.request, mine.node) IS DISTINCT FROM (theirs.event, theirs.cause, theirs.request, theirs.node)
QUALIFY row_number() OVER (PARTITION BY rank ORDER BY turn) = 1
ORDER BY rank

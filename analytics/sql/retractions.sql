-- Retractions: requests that gave everything back under pressure, what it cost, and when they came back.
--
-- `recomputed` are the tokens that had been computed and were not in the tree when the request was admitted again.
-- kind: report
WITH lives AS (
    SELECT *, lead(admitted_seq) OVER tries AS again_seq, lead(admitted_step) OVER tries AS again_step,
        lead(cached_prefix) OVER tries AS again_cached
    FROM requests
    WINDOW tries AS (PARTITION BY run, rank, rid ORDER BY admitted_seq)
)
SELECT run, rank, rid, request, admitted_seq, ended_seq AS retracted_seq, ended_step AS retracted_step, tokens,
    again_seq, again_step, again_step - ended_step AS steps_away, again_cached,
    tokens - again_cached AS recomputed
FROM lives
WHERE ended = 'retracted'
ORDER BY run, rank, retracted_seq

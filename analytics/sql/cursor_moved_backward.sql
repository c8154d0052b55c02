-- Cursors moved backward: a request's window was reclaimed from below where it had been reclaimed to (J22, R132, A25).
-- kind: check
WITH reclaimed AS (
    SELECT
        reclaims.*,
        lag(seq) OVER life AS previous_seq,
        lag(stop) OVER life AS previous_stop
    FROM reclaims
    WINDOW life AS (PARTITION BY run, rank, epoch, request ORDER BY seq)
)
SELECT run, rank, epoch, request, seq, start, stop, previous_seq, previous_stop, cause
FROM reclaimed
WHERE stop < start OR start < previous_stop
ORDER BY run, rank, seq

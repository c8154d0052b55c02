-- Missing events: numbers that no event has, or that two have, and gaps that the journal itself tells of (J11).
--
-- The other checks are not asked behind such a place, but for what one event, or two of one page since, show.
-- kind: check anywhere
WITH numbered AS (
    SELECT run, rank, epoch, seq, lag(seq) OVER (PARTITION BY run, rank ORDER BY seq) AS previous_seq
    FROM events
)
SELECT numbered.run, numbered.rank, numbered.epoch, previous_seq, seq,
    coalesce(lost, seq - previous_seq - 1) AS lost,
    coalesce(reason, CASE WHEN seq = previous_seq THEN 'told twice' ELSE 'nobody says why' END) AS reason
FROM numbered
LEFT JOIN gaps USING (run, rank, seq)
WHERE seq - previous_seq <> 1 OR gaps.lost IS NOT NULL
ORDER BY run, rank, seq

-- Flushes of a busy rank: the tree was emptied while requests ran, or was not empty when that was told (R33, R166, R177).
-- kind: check
WITH whole AS (
    SELECT run, rank, epoch FROM books WHERE opened_seq IS NOT NULL AND gaps IS NULL
), emptied AS (
    SELECT run, rank, epoch, seq, event::VARCHAR AS event
    FROM events
    JOIN whole USING (run, rank, epoch)
    WHERE event IN ('Removed', 'Flushed') AND cause = 'flush'
), lives AS (
    SELECT run, rank, epoch, seq, 1 AS requests, 0 AS nodes FROM admissions
    UNION ALL
    SELECT run, rank, epoch, seq, -1, 0 FROM endings
    UNION ALL
    SELECT run, rank, epoch, seq, 0, CASE event WHEN 'Removed' THEN -1 ELSE 1 END
    FROM node_changes
    WHERE event IN ('Transferred', 'Removed') OR (event = 'Split' AND full_delta > 0)
), counted AS (
    SELECT
        run, rank, epoch, seq,
        sum(sum(requests)) OVER so_far AS requests,
        sum(sum(nodes)) OVER so_far AS nodes
    FROM lives
    JOIN whole USING (run, rank, epoch)
    GROUP BY run, rank, epoch, seq
    WINDOW so_far AS (PARTITION BY run, rank, epoch ORDER BY seq)
)
SELECT emptied.run, emptied.rank, emptied.epoch, emptied.seq, emptied.event, requests::BIGINT AS live_requests, nodes::BIGINT AS nodes_left
FROM emptied
ASOF JOIN counted
    ON emptied.run = counted.run AND emptied.rank = counted.rank AND emptied.epoch = counted.epoch
    AND emptied.seq >= counted.seq
WHERE requests > 0 OR (emptied.event = 'Flushed' AND nodes > 0)
ORDER BY emptied.run, emptied.rank, emptied.seq

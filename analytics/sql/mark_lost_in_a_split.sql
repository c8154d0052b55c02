-- Marks lost in a split: a node that carries a boundary mark was cut, and the upper part did not get it (R114, B15).
-- kind: check
WITH marks AS (
    SELECT run, rank, epoch, marked AS node, seq, boundary FROM lock_changes WHERE event = 'Locked' AND marked <> 0
    UNION ALL
    SELECT run, rank, epoch, node, seq, CASE WHEN full_delta > 0 THEN boundary ELSE 0 END FROM node_changes WHERE event = 'Split'
)
SELECT cuts.run, cuts.rank, cuts.epoch, cuts.seq, cuts.node, marks.boundary AS mark, marks.seq AS marked_seq, cuts.boundary AS moved, cuts.cause
FROM (SELECT * FROM node_changes WHERE event = 'Split' AND full_delta < 0) AS cuts
ASOF JOIN marks
    ON cuts.run = marks.run AND cuts.rank = marks.rank AND cuts.epoch = marks.epoch AND cuts.node = marks.node
    AND cuts.seq > marks.seq
WHERE marks.boundary <> cuts.boundary
ORDER BY cuts.run, cuts.rank, cuts.seq

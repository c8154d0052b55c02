-- Child counts: how many children each node has from `seq` on, from the event that gave it the first.
-- kind: view 3
WITH changed AS (
    SELECT run, rank, epoch, seq, parent AS node, 1 AS children FROM node_changes WHERE event = 'Transferred'
    UNION ALL
    SELECT run, rank, epoch, seq, node, 1 FROM node_changes WHERE event = 'Split' AND full_delta > 0
    UNION ALL
    SELECT removed.run, removed.rank, removed.epoch, removed.seq, states.parent, -1
    FROM (SELECT run, rank, epoch, seq, node FROM node_changes WHERE event = 'Removed') AS removed
    JOIN node_states AS states USING (run, rank, epoch, seq, node)
)
SELECT run, rank, epoch, node, seq, sum(sum(children)) OVER (PARTITION BY run, rank, epoch, node ORDER BY seq)::BIGINT AS children
FROM changed
GROUP BY run, rank, epoch, node, seq

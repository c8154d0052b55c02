-- Younger victims: FULL pressure removed a leaf although another idle one was used longer ago (R102, R103).
--
-- A node is used when a match, a repointed row or a finished request ends at it, or when it is made; a node whose last
-- child is removed is as young as that child was. Asked where recency is the policy, on the unified route.
-- kind: check
WITH RECURSIVE judged AS (
    SELECT run, rank, epoch FROM runs
    WHERE route = 'unified' AND eviction = 'lru' AND opened_seq IS NOT NULL
        AND (run, rank, epoch) IN (SELECT (run, rank, epoch) FROM evictions)
        AND (run, rank, epoch) NOT IN (SELECT (run, rank, epoch) FROM gaps)
), removed AS (
    SELECT run, rank, epoch, node, seq, cause, states.parent
    FROM (SELECT run, rank, epoch, node, seq, cause FROM node_changes WHERE event = 'Removed') AS changes
    JOIN node_states AS states USING (run, rank, epoch, node, seq)
    JOIN judged USING (run, rank, epoch)
), ends AS (
    SELECT run, rank, epoch, node, seq FROM matches WHERE node <> 0
    UNION ALL
    SELECT run, rank, epoch, node, seq FROM repointings WHERE node <> 0
    UNION ALL
    SELECT run, rank, epoch, node, seq FROM endings WHERE event = 'Finished' AND node <> 0
    UNION ALL
    SELECT run, rank, epoch, node, seq FROM node_changes WHERE event = 'Transferred'
), uses AS (
    SELECT run, rank, epoch, node, seq AS used_seq, seq AS known_seq FROM ends JOIN judged USING (run, rank, epoch)
    UNION
    SELECT removed.run, removed.rank, removed.epoch, removed.parent, used_seq, removed.seq
    FROM uses
    JOIN removed USING (run, rank, epoch, node)
    WHERE removed.parent <> 0
), changed AS (
    SELECT run, rank, epoch, node, seq, 1 AS alive, 0 AS children, 0 AS anchors FROM node_changes
    WHERE event = 'Transferred' OR (event = 'Split' AND full_delta > 0)
    UNION ALL
    SELECT run, rank, epoch, node, seq, -1, 0, 0 FROM removed
    UNION ALL
    SELECT run, rank, epoch, node, seq, 0, children - lag(children, 1, 0) OVER (PARTITION BY run, rank, epoch, node ORDER BY seq), 0 FROM child_counts
    UNION ALL
    SELECT run, rank, epoch, node, seq, 0, 0, CASE event WHEN 'Locked' THEN 1 ELSE -1 END FROM lock_changes
    UNION ALL
    SELECT run, rank, epoch, node, known_seq, 0, 0, 0 FROM uses
), summed AS (
    SELECT
        run, rank, epoch, node, seq,
        sum(sum(alive)) OVER so_far AS alive,
        sum(sum(children)) OVER so_far AS children,
        sum(sum(anchors)) OVER so_far AS anchors,
        lead(seq, 1, 9223372036854775807) OVER so_far AS until_seq
    FROM changed
    JOIN judged USING (run, rank, epoch)
    WHERE node <> 0
    GROUP BY run, rank, epoch, node, seq
    WINDOW so_far AS (PARTITION BY run, rank, epoch, node ORDER BY seq)
), known AS (
    SELECT run, rank, epoch, node, known_seq, max(max(used_seq)) OVER (PARTITION BY run, rank, epoch, node ORDER BY known_seq) AS used_seq
    FROM uses
    GROUP BY run, rank, epoch, node, known_seq
), idle AS (
    SELECT summed.run, summed.rank, summed.epoch, summed.node, summed.seq, until_seq, used_seq
    FROM summed
    ASOF JOIN known
        ON summed.run = known.run AND summed.rank = known.rank AND summed.epoch = known.epoch AND summed.node = known.node
        AND summed.seq >= known_seq
    WHERE alive > 0 AND children = 0 AND anchors = 0
), victims AS (
    SELECT removed.run, removed.rank, removed.epoch, removed.node, removed.seq, removed.cause, used_seq
    FROM removed
    ASOF JOIN known
        ON removed.run = known.run AND removed.rank = known.rank AND removed.epoch = known.epoch AND removed.node = known.node
        AND removed.seq > known_seq
    WHERE removed.cause = 'evict/full_leaf'
)
SELECT
    victims.run, victims.rank, victims.epoch, victims.seq, victims.node, victims.used_seq,
    arg_min(idle.node, idle.used_seq) AS older_node,
    min(idle.used_seq) AS older_used_seq,
    any_value(victims.cause) AS cause
FROM victims
JOIN idle
    ON victims.run = idle.run AND victims.rank = idle.rank AND victims.epoch = idle.epoch
    AND idle.used_seq < victims.used_seq AND idle.until_seq >= victims.seq AND idle.seq < victims.seq
GROUP BY victims.run, victims.rank, victims.epoch, victims.seq, victims.node, victims.used_seq
ORDER BY victims.run, victims.rank, victims.seq

-- Namespaces crossed: a match ended at a node that a request of another namespace gave the tree.
--
-- Nodes that no admitted request gave are not judged.
-- kind: check
WITH RECURSIVE givers AS (
    SELECT run, rank, epoch, node, request FROM node_changes WHERE event = 'Transferred' AND request <> 0
    UNION ALL
    SELECT upper.run, upper.rank, upper.epoch, upper.node, givers.request
    FROM givers
    JOIN node_changes AS lower
        ON lower.run = givers.run AND lower.rank = givers.rank AND lower.epoch = givers.epoch AND lower.node = givers.node
        AND lower.event = 'Split' AND lower.full_delta < 0
    JOIN node_changes AS upper
        ON upper.run = lower.run AND upper.rank = lower.rank AND upper.seq = lower.seq AND upper.full_delta > 0
)
SELECT DISTINCT
    matches.run, matches.rank, matches.epoch, matches.seq, matches.request, matches.node,
    givers.request AS giver, matches.namespace, admissions.namespace AS giver_namespace
FROM matches
JOIN givers USING (run, rank, epoch, node)
JOIN admissions
    ON admissions.run = givers.run AND admissions.rank = givers.rank AND admissions.epoch = givers.epoch
    AND admissions.request = givers.request
WHERE matches.namespace <> admissions.namespace
ORDER BY matches.run, matches.rank, matches.seq

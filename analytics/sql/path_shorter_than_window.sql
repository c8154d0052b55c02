-- Paths too short: a request's path in the tree, as it was inserted, ends with less live window than a match needs (J22).
--
-- Asked at the new leaf an insert ends with, at the node that a running request's row was repointed to, and where a match ended: from
-- there upwards, `window_need` tokens or the whole way to the root must have SWA (R134, R258, A17). Paths over nodes
-- from before the journal begins are not judged.
-- kind: check
WITH RECURSIVE ends AS (
    SELECT run, rank, epoch, seq, node, request, event
    FROM node_changes AS leaf
    WHERE event = 'Transferred' AND swa_delta > 0 AND NOT EXISTS (
        SELECT 1
        FROM node_changes AS next
        WHERE next.run = leaf.run AND next.rank = leaf.rank AND next.seq = leaf.seq + 1
            AND next.event = 'Transferred' AND next.parent = leaf.node
    )
    UNION ALL
    SELECT run, rank, epoch, seq, node, request, 'Repointed'
    FROM repointings
    WHERE node <> 0
    UNION ALL
    SELECT run, rank, epoch, seq, node, request, 'Matched'
    FROM matches
    JOIN (SELECT run, rank, epoch FROM runs WHERE route = 'unified') AS unified USING (run, rank, epoch)
    WHERE node <> 0 AND NOT full_only
), states AS MATERIALIZED (
    FROM node_states
), paths AS (
    SELECT run, rank, epoch, seq, node AS ends_at, request, event, node, 0::HUGEINT AS live, page_size, window_need
    FROM ends
    JOIN runs USING (run, rank, epoch)
    WHERE window_need > 0
    UNION ALL
    SELECT
        paths.run, paths.rank, paths.epoch, paths.seq, ends_at, request, event,
        CASE WHEN swa_pages > 0 THEN states.parent ELSE -1 END,
        live + CASE WHEN swa_pages > 0 THEN full_pages * page_size ELSE 0 END,
        page_size,
        window_need
    FROM paths
    JOIN states
        ON states.run = paths.run AND states.rank = paths.rank AND states.epoch = paths.epoch
        AND states.node = paths.node
        AND states.seq <= paths.seq AND (until_seq IS NULL OR until_seq > paths.seq)
    WHERE paths.node > 0 AND live < window_need
)
SELECT run, rank, epoch, ends_at AS node, min(seq) AS seq, arg_min(event, seq) AS event, arg_min(request, seq) AS request,
    min(live)::BIGINT AS live_tokens, window_need
FROM paths
WHERE node = -1 AND live < window_need
GROUP BY run, rank, epoch, ends_at, window_need
ORDER BY run, rank, seq

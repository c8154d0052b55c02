-- Leaks: pages that are neither free nor in the tree when a rank has ended cleanly (J22).
--
-- Pages of a node that has left the tree are lost too. Each comes with who had it last, and since when (W17). Ranks
-- that were killed, or that still run, have no end and are not asked.
-- kind: check
WITH last AS (
    SELECT
        run, rank, epoch, pool, page,
        max(seq) AS seq,
        arg_max(to_kind, seq * 1048576 + place) AS holder_kind,
        arg_max(to_holder, seq * 1048576 + place) AS holder
    FROM pages
    JOIN (SELECT run, rank, epoch FROM runs WHERE closed) AS ended USING (run, rank, epoch)
    GROUP BY ALL
), lost AS (
    SELECT last.*
    FROM last
    LEFT JOIN nodes ON holder_kind = 'tree' AND node = holder
        AND nodes.run = last.run AND nodes.rank = last.rank AND nodes.epoch = last.epoch
    WHERE holder_kind IN ('pending', 'request') OR (holder_kind = 'tree' AND removed_seq IS NOT NULL)
)
SELECT lost.*, events.event, events.cause, rid
FROM lost
JOIN events USING (run, rank, seq)
LEFT JOIN requests ON holder_kind = 'request' AND requests.request = holder
    AND requests.run = lost.run AND requests.rank = lost.rank AND requests.epoch = lost.epoch
ORDER BY lost.run, lost.rank, seq, pool, page

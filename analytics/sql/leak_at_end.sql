-- Leaks: pages that are neither free nor in the tree when a rank has ended cleanly, and that no live request has (J22).
--
-- Pages of a node that has left the tree are lost too. Each comes with who had it last, since when, and why (W17); `seq` is
-- where its holder went, or the end.
-- Ranks that were killed, or that still run, have no end and are not asked.
-- kind: check
WITH last AS (
    SELECT
        run, rank, epoch, pool, page,
        max(seq) AS held_since,
        arg_max(to_kind, seq * 1048576 + place) AS holder_kind,
        arg_max(to_holder, seq * 1048576 + place) AS holder
    FROM pages
    JOIN (SELECT run, rank, epoch FROM runs WHERE closed) AS ended USING (run, rank, epoch)
    GROUP BY ALL
    HAVING holder_kind <> 'free'
), held AS (
    SELECT last.*, rid, removed_seq, coalesce(ended_seq, removed_seq, last_seq) AS seq
    FROM last
    LEFT JOIN requests
        ON requests.run = last.run AND requests.rank = last.rank AND requests.epoch = last.epoch
        AND holder_kind = 'request' AND request = holder
    LEFT JOIN nodes
        ON nodes.run = last.run AND nodes.rank = last.rank AND nodes.epoch = last.epoch
        AND holder_kind = 'tree' AND node = holder
    JOIN (SELECT run, rank, epoch, last_seq FROM runs) AS ends
        ON ends.run = last.run AND ends.rank = last.rank AND ends.epoch = last.epoch
    WHERE NOT (holder_kind = 'request' AND admitted_seq IS NOT NULL AND ended_seq IS NULL)
        AND NOT (holder_kind = 'tree' AND removed_seq IS NULL)
)
SELECT held.*, event, cause
FROM held
JOIN (SELECT run, rank, seq AS held_since, event, cause FROM events) AS taken USING (run, rank, held_since)
ORDER BY run, rank, seq, pool, page

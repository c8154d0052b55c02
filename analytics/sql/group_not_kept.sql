-- Free groups that were not kept: pages passed an open group, waited without one, or stayed behind when it ended (R29, R43, R44).
--
-- A group that begins within another, or ends without having begun, is one too (R49). HOST pages know no groups.
-- kind: check
WITH groups AS (
    SELECT run, rank, epoch, seq, event::VARCHAR AS event, lag(event, 1, 'GroupFlushed') OVER turns AS before
    FROM events
    JOIN (SELECT run, rank, epoch FROM books WHERE opened_seq IS NOT NULL AND gaps IS NULL) AS whole USING (run, rank, epoch)
    WHERE event IN ('GroupOpened', 'GroupFlushed')
    WINDOW turns AS (PARTITION BY run, rank, epoch ORDER BY seq)
), given_up AS (
    SELECT run, rank, epoch, seq, event::VARCHAR AS event, to_kind::VARCHAR AS went_to, count(*) AS pages
    FROM pages
    JOIN (SELECT DISTINCT run, rank, epoch FROM groups) AS grouped USING (run, rank, epoch)
    WHERE from_kind <> 'pending' AND to_kind IN ('free', 'pending') AND pool <> 'host'
    GROUP BY ALL
), placed AS (
    SELECT given_up.*, coalesce(groups.event = 'GroupOpened', false) AS is_open
    FROM given_up
    ASOF LEFT JOIN groups
        ON given_up.run = groups.run AND given_up.rank = groups.rank AND given_up.epoch = groups.epoch
        AND given_up.seq > groups.seq
), waiting AS (
    SELECT
        run, rank, epoch, seq AS moved_seq,
        sum(sum((to_kind = 'pending')::INTEGER - (from_kind = 'pending')::INTEGER)) OVER (PARTITION BY run, rank, epoch ORDER BY seq) AS pages
    FROM pages
    WHERE from_kind = 'pending' OR to_kind = 'pending'
    GROUP BY run, rank, epoch, seq
), flushed AS (
    SELECT groups.run, groups.rank, groups.epoch, groups.seq, waiting.pages
    FROM groups
    ASOF JOIN waiting
        ON groups.run = waiting.run AND groups.rank = waiting.rank AND groups.epoch = waiting.epoch
        AND groups.seq >= moved_seq
    WHERE event = 'GroupFlushed'
)
SELECT run, rank, epoch, seq, event, CASE event WHEN 'GroupOpened' THEN 'begun within a group' ELSE 'ended without a group' END AS fault, 0 AS pages
FROM groups
WHERE event = before
UNION ALL
SELECT run, rank, epoch, seq, event, CASE went_to WHEN 'free' THEN 'passed the open group' ELSE 'pending without a group' END, pages
FROM placed
WHERE (went_to = 'free') = is_open
UNION ALL
SELECT run, rank, epoch, seq, 'GroupFlushed', 'left behind', pages::BIGINT
FROM flushed
WHERE pages > 0
ORDER BY run, rank, seq

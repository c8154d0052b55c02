-- Rows repointed to too few pages: duplicates of a running request were freed, and its row goes on naming them (R149).
--
-- Since the row was repointed before, or its request admitted.
-- kind: check
WITH freed AS (
    SELECT run, rank, epoch, seq, from_holder AS request, count(*) AS pages
    FROM pages
    WHERE pool = 'full' AND from_kind = 'request' AND to_kind IN ('free', 'pending')
        AND cause IN ('unfinished/duplicate', 'unfinished/heal')
    GROUP BY ALL
), turns AS (
    SELECT repointings.*, lag(seq, 1, 0) OVER (PARTITION BY run, rank, epoch, request ORDER BY seq) AS before_seq
    FROM repointings
)
SELECT turns.run, turns.rank, turns.epoch, turns.seq, turns.request, any_value(turns.pages) AS pages, sum(freed.pages)::BIGINT AS freed
FROM turns
JOIN freed
    ON turns.run = freed.run AND turns.rank = freed.rank AND turns.epoch = freed.epoch AND turns.request = freed.request
    AND freed.seq BETWEEN before_seq AND turns.seq
GROUP BY turns.run, turns.rank, turns.epoch, turns.seq, turns.request
HAVING sum(freed.pages) > any_value(turns.pages)
ORDER BY turns.run, turns.rank, turns.seq

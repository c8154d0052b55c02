-- Reuse of two runs compared: what each cause cost in the one and in the other, side by side, and the hits among them.
--
-- The tokens of a run add up to its prompts. `share_change` is the other run's share less this one's: what is above 0 goes there
-- in the other run only, or more of it (J24).
-- kind: report
-- set run RUN: the one run
-- set other RUN: the other run
WITH summed AS (
    SELECT run, kind, cause, by_event AS event, took, pool, sum(tokens)::BIGINT AS tokens
    FROM reuse
    WHERE run IN (getvariable('run'), getvariable('other'))
    GROUP BY ALL
), shared AS (
    SELECT *, tokens / nullif(sum(tokens) OVER (PARTITION BY run), 0) AS share FROM summed
), mine AS (
    FROM shared WHERE run = getvariable('run')
), theirs AS (
    FROM shared WHERE run = getvariable('other')
), joined AS (
    SELECT
        coalesce(mine.kind, theirs.kind) AS kind,
        coalesce(mine.cause, theirs.cause) AS cause,
        coalesce(mine.event, theirs.event) AS event,
        coalesce(mine.took, theirs.took) AS took,
        coalesce(mine.pool, theirs.pool) AS pool,
        coalesce(mine.tokens, 0) AS tokens,
        coalesce(theirs.tokens, 0) AS other_tokens,
        coalesce(mine.share, 0) AS share,
        coalesce(theirs.share, 0) AS other_share
    FROM mine
    FULL JOIN theirs
        ON mine.kind = theirs.kind AND mine.cause IS NOT DISTINCT FROM theirs.cause
        AND mine.event IS NOT DISTINCT FROM theirs.event AND mine.took IS NOT DISTINCT FROM theirs.took
)
SELECT
    kind, cause, event, took, pool, tokens, other_tokens,
    other_tokens - tokens AS difference,
    round(share, 4) AS share,
    round(other_share, 4) AS other_share,
    round(other_share - share, 4) AS share_change
FROM joined
ORDER BY kind <> 'hit', abs(other_tokens - tokens) DESC, kind, cause, event, took

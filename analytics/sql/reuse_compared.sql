-- Reuse of two runs compared: what each cause cost in the one and in the other, side by side, and the hits among them.
--
-- The tokens of a run add up to its prompts, and shares are of these: they compare runs of unequal length (J24).
-- kind: report
-- set run RUN: the one run
-- set other RUN: the other run
WITH summed AS (
    SELECT run, kind, cause, took, sum(tokens)::BIGINT AS tokens
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
        coalesce(mine.took, theirs.took) AS took,
        coalesce(mine.tokens, 0) AS tokens,
        coalesce(theirs.tokens, 0) AS other_tokens,
        coalesce(mine.share, 0) AS share,
        coalesce(theirs.share, 0) AS other_share
    FROM mine
    FULL JOIN theirs
        ON mine.kind = theirs.kind AND mine.cause IS NOT DISTINCT FROM theirs.cause
        AND mine.took IS NOT DISTINCT FROM theirs.took
)
SELECT
    kind, cause, took, tokens, other_tokens,
    other_tokens - tokens AS difference,
    round(share, 4) AS share,
    round(other_share, 4) AS other_share
FROM joined
ORDER BY kind <> 'hit', abs(other_tokens - tokens) DESC, kind, cause, took

-- Hit rate by cause: where every prompt token went, hit or not, and why; by rank, a row without one is the run.
--
-- The shares of a rank add up to 1, and that of `hit` is its hit rate. Where a cause is known, `hit_rate_kept` is what the rate would
-- be, had its tokens been kept and nothing else gone for them: a bound, no forecast. `radixledger replay lost-reuse` says the kinds in words.
-- kind: report
WITH fates AS (
    SELECT run, rank, admitted_seq, kind, cause, tokens, (rank, admitted_seq) AS admission
    FROM reuse
), summed AS (
    SELECT run, rank, kind, cause, count(DISTINCT admission) AS requests, sum(tokens)::BIGINT AS tokens
    FROM fates
    GROUP BY GROUPING SETS ((run, rank, kind, cause), (run, kind, cause))
), shares AS (
    SELECT
        *,
        nullif(sum(tokens) OVER one, 0) AS prompt_tokens,
        sum(tokens) FILTER (kind = 'hit') OVER one AS hit_tokens
    FROM summed
    WINDOW one AS (PARTITION BY run, rank)
)
SELECT
    run, rank, kind, cause, requests, tokens,
    round(tokens / prompt_tokens, 4) AS share,
    round(CASE WHEN cause IS NOT NULL THEN hit_tokens + tokens END / prompt_tokens, 4) AS hit_rate_kept
FROM shares
ORDER BY run, rank NULLS LAST, kind <> 'hit', tokens DESC, kind, cause

-- Hit rate: how many of the prompt tokens of admitted requests came from the tree, by rank; a row without one is the run.
--
-- `full_hit_rate` is what FULL pages alone would have given: the difference was lost to dead windows. A rate comes
-- with its parts, so that ranks and runs can be added up (W33).
-- The first requests of each rank may be a warm-up that says nothing about the traffic behind it.
-- kind: report
-- set warm_up INTEGER 0.. = 0: how many first requests of each rank do not count
WITH counted AS (
    FROM requests
    QUALIFY row_number() OVER (PARTITION BY run, rank ORDER BY admitted_seq) > getvariable('warm_up')
)
SELECT
    run, rank,
    count(*) AS requests,
    sum(prompt)::BIGINT AS prompt_tokens,
    sum(cached_prefix)::BIGINT AS cached_tokens,
    sum(computed)::BIGINT AS computed_tokens,
    round(sum(cached_prefix) / sum(prompt), 4) AS hit_rate,
    round(sum(coalesce(full_hit, cached_prefix)) / sum(prompt), 4) AS full_hit_rate
FROM counted
GROUP BY ROLLUP (run, rank)
HAVING run IS NOT NULL
ORDER BY run, rank NULLS LAST

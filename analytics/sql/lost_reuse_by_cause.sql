-- Lost reuse by cause: which evictions, reclaims and vetoes cost how many tokens of later prompts, by run and rank.
--
-- `lost` tokens would have hit until an event of this cause took them. `not_usable` ones were cached, but their window had been
-- given back; `never_cached` ones, perhaps, were freed and not kept. `pool` is the one that a start lacked.
-- `share` is of all prompt tokens of the rank; `steps_before`: from the event to the match, on average.
-- kind: report
SELECT
    run, rank, kind, cause, by_event AS event, took, pool,
    count(DISTINCT admitted_seq) AS misses,
    count(*) AS losses,
    sum(tokens)::BIGINT AS tokens,
    round(sum(tokens) / nullif(any_value(prompt_tokens), 0), 4) AS share,
    round(avg(step - by_step), 1) AS steps_before
FROM reuse
JOIN (SELECT run, rank, sum(tokens) AS prompt_tokens FROM reuse GROUP BY ALL) USING (run, rank)
WHERE by_seq IS NOT NULL
GROUP BY ALL
ORDER BY run, rank, tokens DESC, kind, cause, event, took

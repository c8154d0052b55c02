-- Lost reuse by event: the events that cost later prompts most, with what each took and one of the requests that missed it.
--
-- `wanted_by` took room next; `asked_full`, `asked_swa` and `asked_recurrent` are what that eviction was asked for.
-- kind: report
-- set most INTEGER 1.. = 20: how many events of each rank
SELECT
    run, rank, by_seq AS seq, by_step AS step, by_event AS event, cause, by_node AS node, took, pool,
    asked_full, asked_swa, asked_recurrent, wanted_by,
    count(DISTINCT admitted_seq) AS misses,
    sum(tokens)::BIGINT AS tokens,
    arg_min(rid, admitted_seq) AS one_of
FROM reuse
WHERE kind = 'lost'
GROUP BY run, rank, by_seq, by_step, by_event, cause, by_node, took, pool, asked_full, asked_swa, asked_recurrent, wanted_by
QUALIFY row_number() OVER (PARTITION BY run, rank ORDER BY sum(reuse.tokens) DESC, by_seq) <= getvariable('most')
ORDER BY run, rank, tokens DESC, seq

-- Requests, one row for each admission: what it asked for and found, and how it ended.
--
-- `cached_prefix` tokens came from the tree, `computed` is the rest of the prompt (W26). `hit` is what the tree could
-- use, `full_hit` what FULL alone would have given, `stop` why the match went no further (W18). A retracted request
-- comes back as another row with the same `rid`. `ended` is NULL while it runs. `decoded` tokens behind the prompt were
-- computed; the last one that was sampled never is.
-- kind: view 2
WITH matched AS (
    SELECT DISTINCT ON (run, rank, epoch, request) run, rank, epoch, request, asked, hit, full_hit, stop
    FROM matches
    WHERE request <> 0
    ORDER BY seq
), reclaimed AS (
    SELECT run, rank, epoch, request, sum(pages)::BIGINT AS reclaimed_pages
    FROM reclaims
    GROUP BY ALL
)
SELECT
    run, rank, epoch, request, rid,
    admissions.seq AS admitted_seq,
    admissions.step AS admitted_step,
    admissions.time_ns AS admitted_ns,
    prompt,
    prefix AS cached_prefix,
    prompt - prefix AS computed,
    asked,
    hit,
    full_hit,
    stop,
    CASE endings.event WHEN 'Finished' THEN 'finished' WHEN 'Retracted' THEN 'retracted' WHEN 'Aborted' THEN 'aborted' END AS ended,
    endings.seq AS ended_seq,
    endings.step AS ended_step,
    endings.time_ns AS ended_ns,
    tokens,
    greatest(tokens - prompt, 0) AS decoded,
    cached,
    endings.node AS cached_node,
    coalesce(reclaimed_pages, 0) AS reclaimed_pages,
    namespace
FROM admissions
LEFT JOIN matched USING (run, rank, epoch, request)
LEFT JOIN endings USING (run, rank, epoch, request)
LEFT JOIN reclaimed USING (run, rank, epoch, request)

-- Tail reclaims: SWA pages that running requests gave back behind their window, by cause, and how much of it they kept.
--
-- `of_taken` is their share of the SWA pages that requests took, by prefill and decode. `kept_*` are tokens between the reclaim's end
-- and the position that it was counted back from: a window and up to a page. Reclaims that do not say it are not in it (R130, R132).
-- `never` are requests of the rank that gave nothing back while they ran.
-- kind: report
WITH taken AS (
    SELECT run, rank, count(*) AS pages FROM pages WHERE pool = 'swa' AND from_kind = 'free' AND to_kind = 'request' GROUP BY ALL
), running AS (
    SELECT run, rank, count(*) FILTER (reclaimed_pages = 0) AS never FROM requests GROUP BY ALL
)
SELECT
    run, rank, cause,
    count(DISTINCT request) AS requests,
    any_value(never) AS never,
    count(*) AS reclaims,
    sum(reclaims.pages)::BIGINT AS pages,
    round(sum(reclaims.pages) / any_value(taken.pages), 4) AS of_taken,
    median(reclaims.pages) AS pages_median,
    max(reclaims.pages) AS pages_max,
    median(pre - stop) FILTER (pre >= 0) AS kept_median,
    max(pre - stop) FILTER (pre >= 0) AS kept_max
FROM reclaims
LEFT JOIN taken USING (run, rank)
LEFT JOIN running USING (run, rank)
GROUP BY run, rank, cause
ORDER BY run, rank, pages DESC, cause

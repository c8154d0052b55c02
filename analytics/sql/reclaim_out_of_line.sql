-- Reclaims out of line: a request gave back what a path that may end there needs, or passed pages and gave back others (R130, R131, R134).
--
-- `pre` is what the writer counted back from; from the page boundary at or below it a whole window must be left. Reclaims
-- that do not say it are not asked.
-- kind: check
WITH seats AS (
    SELECT run, rank, epoch, request, seq AS seated_seq, prefix AS protected FROM admissions
    UNION ALL
    SELECT run, rank, epoch, request, seq, protected FROM repointings
), placed AS (
    SELECT reclaims.*, coalesce(protected, 0) AS protected
    FROM reclaims
    ASOF LEFT JOIN seats
        ON reclaims.run = seats.run AND reclaims.rank = seats.rank AND reclaims.epoch = seats.epoch
        AND reclaims.request = seats.request AND reclaims.seq > seated_seq
    WHERE pre >= 0
), judged AS (
    SELECT
        placed.*,
        pre // page_size * page_size - stop AS window_left,
        window_tokens,
        (stop - greatest(start, protected)) // page_size AS pages_passed
    FROM placed
    JOIN (SELECT run, rank, epoch, page_size, window_tokens FROM runs WHERE page_size IS NOT NULL) AS paged USING (run, rank, epoch)
)
SELECT run, rank, epoch, seq, request, start, stop, pre, window_left, window_tokens, pages_passed, pages, cause
FROM judged
WHERE window_left < window_tokens OR pages_passed <> pages
ORDER BY run, rank, seq

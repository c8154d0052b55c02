-- Stale mappings: a page went back to the free pages while a mapping still led to it or from it (J22, B01, B05).
--
-- A FULL page may keep its mapping over a `free_full` until the `free_swa` that must follow it, but not until the
-- next allocation (A4). One row for each mapping; `seq` is the first event that it should not have outlived.
-- kind: check
WITH given_back AS (
    SELECT run, rank, epoch, pool, page, seq AS released_seq, event, cause, request
    FROM pages
    WHERE to_kind IN ('free', 'pending') AND from_kind NOT IN ('free', 'pending')
), allocated AS (
    SELECT run, rank, epoch, seq AS allocated_seq
    FROM events
    WHERE event IN ('Allocated', 'Extended')
        AND seq IN (SELECT seq FROM pages WHERE pages.run = events.run AND pages.rank = events.rank AND from_kind = 'free')
), spans AS (
    SELECT *, coalesce(cleared_seq, 9223372036854775807) AS gone_seq
    FROM mapping_spans
), swa_gone AS (
    SELECT spans.*, 'swa' AS pool, released_seq, released_seq AS broken_seq, event, cause, request
    FROM spans
    ASOF JOIN (FROM given_back WHERE pool = 'swa') AS released
        ON spans.run = released.run AND spans.rank = released.rank AND spans.epoch = released.epoch
        AND spans.swa_page = released.page AND spans.set_seq < released.released_seq
    WHERE released_seq < gone_seq
), full_gone AS (
    SELECT spans.*, 'full' AS pool, released_seq, event, cause, request
    FROM spans
    ASOF JOIN (FROM given_back WHERE pool = 'full') AS released
        ON spans.run = released.run AND spans.rank = released.rank AND spans.epoch = released.epoch
        AND spans.full_page = released.page AND spans.set_seq < released.released_seq
    WHERE released_seq < gone_seq
), full_kept AS (
    SELECT full_gone.*, allocated_seq, closed, last_seq AS closed_seq
    FROM full_gone
    JOIN runs USING (run, rank, epoch)
    ASOF LEFT JOIN allocated
        ON full_gone.run = allocated.run AND full_gone.rank = allocated.rank AND full_gone.epoch = allocated.epoch
        AND full_gone.released_seq < allocated.allocated_seq
), stale AS (
    SELECT run, rank, epoch, released_seq AS seq, pool, full_page, swa_page, set_seq, released_seq, cleared_seq, event, cause, request
    FROM swa_gone
    UNION ALL BY NAME
    SELECT
        run, rank, epoch, coalesce(allocated_seq, closed_seq) AS seq,
        pool, full_page, swa_page, set_seq, released_seq, cleared_seq, event, cause, request
    FROM full_kept
    WHERE coalesce(allocated_seq < gone_seq, closed AND cleared_seq IS NULL)
)
SELECT DISTINCT ON (run, rank, epoch, full_page, set_seq) *
FROM stale
ORDER BY run, rank, epoch, full_page, set_seq, seq, pool

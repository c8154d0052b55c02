-- Occupancy over time: who held the pages of each pool, at `points` moments of equal distance in events.
--
-- Counted from the moves alone; in a journal that begins at a snapshot the numbers are changes since then.
-- kind: report
-- set points INTEGER 1..10000 = 20: how many moments
WITH moved AS (
    SELECT
        run, rank, epoch, pool, seq,
        count(*) FILTER (to_kind = 'request') - count(*) FILTER (from_kind = 'request') AS request,
        count(*) FILTER (to_kind = 'tree') - count(*) FILTER (from_kind = 'tree') AS tree,
        count(*) FILTER (to_kind = 'pending') - count(*) FILTER (from_kind = 'pending') AS pending,
        count(*) FILTER (to_kind = 'in_flight') - count(*) FILTER (from_kind = 'in_flight') AS in_flight
    FROM pages
    GROUP BY ALL
), summed AS (
    SELECT
        run, rank, epoch, pool, seq,
        sum(request) OVER so_far AS request_pages,
        sum(tree) OVER so_far AS tree_pages,
        sum(pending) OVER so_far AS pending_pages,
        sum(in_flight) OVER so_far AS in_flight_pages
    FROM moved
    WINDOW so_far AS (PARTITION BY run, rank, epoch, pool ORDER BY seq)
), moments AS (
    SELECT run, rank, epoch, pool, unnest(range(1, getvariable('points') + 1)) AS point, first_seq, last_seq
    FROM runs, (VALUES ('full'), ('swa'), ('host'), ('recurrent')) AS pools (pool)
    WHERE (pool <> 'host' OR host_pages > 0) AND (pool <> 'recurrent' OR recurrent_slots > 0)
), asked AS (
    SELECT run, rank, epoch, pool, first_seq + (last_seq - first_seq) * point // getvariable('points') AS seq FROM moments
)
SELECT
    asked.run, asked.rank, asked.epoch, asked.seq, events.step, asked.pool,
    coalesce(request_pages, 0)::BIGINT AS request_pages,
    coalesce(tree_pages, 0)::BIGINT AS tree_pages,
    coalesce(pending_pages, 0)::BIGINT AS pending_pages,
    coalesce(in_flight_pages, 0)::BIGINT AS in_flight_pages,
    CASE asked.pool WHEN 'full' THEN full_pages WHEN 'swa' THEN swa_pages WHEN 'host' THEN host_pages ELSE recurrent_slots END
        - coalesce(request_pages, 0) - coalesce(tree_pages, 0) - coalesce(pending_pages, 0) - coalesce(in_flight_pages, 0)
        AS free_pages
FROM asked
ASOF LEFT JOIN summed
    ON asked.run = summed.run AND asked.rank = summed.rank AND asked.epoch = summed.epoch
    AND asked.pool = summed.pool::VARCHAR AND asked.seq >= summed.seq
LEFT JOIN events ON events.run = asked.run AND events.rank = asked.rank AND events.seq = asked.seq
LEFT JOIN runs ON runs.run = asked.run AND runs.rank = asked.rank AND runs.epoch = asked.epoch
ORDER BY asked.run, asked.rank, asked.pool, asked.seq

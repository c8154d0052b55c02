-- Pages outside of rows: how many each pool has lent to accounts that no admitted request stands behind, over time.
--
-- Callers of the allocator's faces hold pages without a row; the ledger counts rows, so it cannot see these. One row
-- for each event that changed the number; `seq` is its place, `pages_out` the number from there on.
-- kind: view 3
WITH lent AS (
    SELECT
        run, rank, epoch, pool::VARCHAR AS pool, seq,
        count(*) FILTER (to_kind = 'request' AND NOT to_row) - count(*) FILTER (from_kind = 'request' AND NOT from_row) AS delta
    FROM (
        SELECT
            run, rank, epoch, pool, seq, from_kind, to_kind,
            (run, rank, epoch, to_holder) IN (SELECT (run, rank, epoch, request) FROM admissions) AS to_row,
            (run, rank, epoch, from_holder) IN (SELECT (run, rank, epoch, request) FROM admissions) AS from_row
        FROM pages
        WHERE from_kind = 'request' OR to_kind = 'request'
    )
    GROUP BY ALL
)
SELECT run, rank, epoch, pool, seq, sum(delta) OVER (PARTITION BY run, rank, epoch, pool ORDER BY seq)::BIGINT AS pages_out
FROM lent
WHERE delta <> 0

-- Books: a number for each run, rank and epoch, with what page histories begin from, and where they break off.
--
-- `opened_seq` is NULL where the journal begins at a snapshot; `gaps` are the places of missing events that it tells of, NULL
-- where there are none. `lost_seq` is the first event from which on nobody knows the state: a gap, one behind numbers that
-- nobody tells of, or an epoch's first if its `Opened` is lost. The number is good for one query only; it makes a page's key one integer.
-- kind: view 1
WITH told AS (
    SELECT
        run, rank, epoch, first_seq,
        first_seq - lag(last_seq) OVER (PARTITION BY run, rank, epoch ORDER BY first_seq) AS steps_on,
        row_number() OVER (PARTITION BY run, rank ORDER BY first_seq) AS turn
    FROM loads
), known AS (
    SELECT run, rank, epoch, min(first_seq) FILTER (steps_on > 1) AS untold_seq, min(first_seq) AS first_seq, min(turn) = 1 AS is_first
    FROM told
    GROUP BY ALL
)
SELECT
    run, rank, epoch, row_number() OVER (ORDER BY run, rank, epoch) AS book, opened_seq, gaps,
    least(gaps[1], untold_seq, CASE WHEN opened_seq IS NULL AND NOT is_first THEN known.first_seq END) AS lost_seq
FROM known
LEFT JOIN (SELECT run, rank, epoch, min(seq) AS opened_seq FROM openings GROUP BY ALL) USING (run, rank, epoch)
LEFT JOIN (SELECT run, rank, epoch, list(seq ORDER BY seq) AS gaps FROM gaps GROUP BY ALL) USING (run, rank, epoch)

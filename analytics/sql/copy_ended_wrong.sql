-- Copies ended wrong: a copy between device and host ended for other pages than it began with, or not at all.
--
-- A node that was cut under way has an end for each part. Copies that were still under way when a rank was killed, or
-- that began before the journal, are not judged; one that outlives a clean end is.
-- kind: check
WITH counted AS (
    SELECT
        run, rank, epoch, transfer,
        min(seq) FILTER (event IN ('BackupBegun', 'LoadBegun')) AS begun_seq,
        max(seq) AS last_seq,
        arg_max(event, seq) AS last_event,
        coalesce(sum(pages) FILTER (event IN ('BackupBegun', 'LoadBegun')), 0)::BIGINT AS begun_pages,
        coalesce(sum(pages) FILTER (event IN ('BackupEnded', 'LoadEnded')), 0)::BIGINT AS ended_pages
    FROM copies
    GROUP BY ALL
)
SELECT run, rank, epoch, transfer, begun_seq, counted.last_seq AS seq, last_event AS event, begun_pages, ended_pages
FROM counted
JOIN runs USING (run, rank, epoch)
JOIN books USING (run, rank, epoch)
WHERE books.opened_seq IS NOT NULL AND gaps IS NULL
    AND (begun_seq IS NULL OR ended_pages > begun_pages OR (closed AND ended_pages < begun_pages))
ORDER BY run, rank, seq

-- Books: a number for each run, rank and epoch, with what page histories begin from.
--
-- `opened_seq` is NULL where the journal begins at a snapshot; `gaps` are the places of missing events, NULL
-- where there are none. The number is good for one query only; it makes a page's key one integer.
-- kind: view 1
SELECT run, rank, epoch, row_number() OVER (ORDER BY run, rank, epoch) AS book, opened_seq, gaps
FROM (SELECT DISTINCT run, rank, epoch FROM loads)
LEFT JOIN (SELECT run, rank, epoch, min(seq) AS opened_seq FROM openings GROUP BY ALL) USING (run, rank, epoch)
LEFT JOIN (SELECT run, rank, epoch, list(seq ORDER BY seq) AS gaps FROM gaps GROUP BY ALL) USING (run, rank, epoch)

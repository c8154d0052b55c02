-- What a journal is made of: events by type, with the page moves they made.
-- kind: report
SELECT run, rank, event, count(*) AS events, coalesce(sum(page_moves), 0)::BIGINT AS page_moves
FROM events
LEFT JOIN (SELECT run, rank, seq, count(*) AS page_moves FROM pages GROUP BY ALL) USING (run, rank, seq)
GROUP BY ALL
ORDER BY run, rank, events DESC, event

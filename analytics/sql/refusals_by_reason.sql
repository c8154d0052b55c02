-- Refusals by reason: commands that were turned down, and how often.
-- kind: report
SELECT run, rank, reason, cause, count(*) AS refusals, min(seq) AS first_seq, any_value(detail) AS example
FROM refusals
GROUP BY ALL
ORDER BY run, rank, refusals DESC, reason

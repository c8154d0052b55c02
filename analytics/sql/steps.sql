-- Steps, one row for each device step: how many requests it ran and tokens it wrote, and when its results were there.
-- kind: view 2
SELECT
    run, rank, epoch, number,
    max(seq) FILTER (phase = 'began') AS began_seq,
    max(time_ns) FILTER (phase = 'began') AS began_ns,
    max(seq) FILTER (phase = 'ended') AS ended_seq,
    max(time_ns) FILTER (phase = 'ended') AS ended_ns,
    max(requests) AS requests,
    max(tokens) AS tokens
FROM step_changes
GROUP BY ALL

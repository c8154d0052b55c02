-- Lock hold times, in events, steps and milliseconds, by what took the lock.
-- kind: report
SELECT
    run, rank, locked_cause AS cause,
    count(*) AS locks,
    count(*) FILTER (unlocked_seq IS NULL) AS held,
    median(unlocked_seq - locked_seq) AS events_median,
    max(unlocked_seq - locked_seq) AS events_max,
    median(unlocked_step - locked_step) AS steps_median,
    max(unlocked_step - locked_step) AS steps_max,
    round(median(unlocked_ns - locked_ns) / 1e6, 3) AS ms_median,
    round(max(unlocked_ns - locked_ns) / 1e6, 3) AS ms_max
FROM locks
GROUP BY ALL
ORDER BY run, rank, locks DESC, cause

-- Tombstones: how many nodes lost their window, how many got it back, and after how many steps.
--
-- A tombstone ends by being healed or removed; `open` ones had neither when the journal ended. Those that were
-- born without a window (R94) are counted as `born`, the upper parts of tombstones that were split as `cut`.
-- kind: report
WITH window_changes AS (
    SELECT
        run, rank, epoch, node, seq, step, event, cause,
        lead(event) OVER life AS next_event,
        lead(step) OVER life - step AS steps
    FROM node_changes
    WHERE event IN ('Tombstoned', 'Healed', 'Removed') 
        OR (event IN ('Transferred', 'Split') AND full_delta > 0 AND swa_delta = 0)
    WINDOW life AS (PARTITION BY run, rank, epoch, node ORDER BY seq)
)
SELECT
    run, rank,
    CASE event WHEN 'Transferred' THEN 'born' WHEN 'Split' THEN 'cut' ELSE cause::VARCHAR END AS cause,
    count(*) AS tombstones,
    count(*) FILTER (next_event = 'Healed') AS healed,
    count(*) FILTER (next_event = 'Removed') AS removed,
    count(*) FILTER (next_event IS NULL) AS open,
    round(count(*) FILTER (next_event = 'Healed') / count(*), 4) AS heal_rate,
    median(steps) FILTER (next_event = 'Healed') AS median_steps_to_heal
FROM window_changes
WHERE event IN ('Tombstoned', 'Transferred', 'Split')
GROUP BY ALL
ORDER BY run, rank, tombstones DESC, cause

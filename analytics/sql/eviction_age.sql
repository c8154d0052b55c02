-- Age at eviction: how old nodes were, in steps, when they left the tree or lost their window, and how many no match had ended at (W28, W35).
--
-- The age of a window that was healed counts from there. `idle_median`: steps since a match had last ended there, where one had.
-- kind: report
WITH lives AS (
    SELECT
        run, rank, epoch, node, seq, step, event, cause,
        first_value(step) OVER life AS made_step,
        max(step) FILTER (event = 'Healed') OVER life AS healed_step
    FROM node_changes
    WINDOW life AS (PARTITION BY run, rank, epoch, node ORDER BY seq)
), gone AS (
    SELECT *, step - CASE event WHEN 'Tombstoned' THEN coalesce(healed_step, made_step) ELSE made_step END AS age
    FROM lives
    WHERE event IN ('Removed', 'Tombstoned', 'Demoted')
), hits AS (
    SELECT run, rank, epoch, node, seq, step AS hit_step FROM matches WHERE hit > 0
)
SELECT
    gone.run, gone.rank, gone.cause, gone.event,
    count(*) AS nodes,
    count(*) FILTER (hit_step IS NULL) AS never_hit,
    median(age) AS steps_median,
    quantile_cont(age, 0.9) AS steps_p90,
    max(age) AS steps_max,
    median(gone.step - hit_step) AS idle_median
FROM gone
ASOF LEFT JOIN hits
    ON gone.run = hits.run AND gone.rank = hits.rank AND gone.epoch = hits.epoch
    AND gone.node = hits.node AND gone.seq > hits.seq
GROUP BY ALL
ORDER BY gone.run, gone.rank, nodes DESC, gone.cause

-- Coverage of ownership transitions: the kinds that the project's own tests play, and those of these runs, side by side.
--
-- A kind that a run shows and no test plays (`seen` is `run only`) is one that nothing has proven: it comes first.
-- `tested_events` counts the events of the plays that every test run repeats, `events` and `pages` those of these runs.
-- kind: report
WITH here AS (
    SELECT pool, from_kind, to_kind, event, cause, sum(events)::BIGINT AS events, sum(pages)::BIGINT AS pages
    FROM transitions
    GROUP BY ALL
)
SELECT
    pool, from_kind, to_kind, event, cause,
    CASE WHEN tested.events IS NULL THEN 'run only' WHEN here.events IS NULL THEN 'tests only' ELSE 'both' END AS seen,
    coalesce(tested.events, 0) AS tested_events,
    coalesce(here.events, 0) AS events,
    coalesce(here.pages, 0) AS pages
FROM here
FULL JOIN tested_transitions AS tested USING (pool, from_kind, to_kind, event, cause)
ORDER BY seen = 'run only' DESC, seen = 'tests only', pool, from_kind, to_kind, event, cause

-- Wrong credit: an eviction reported other gains than the pages that its events gave to the pools (J22, R105, R108).
--
-- Its events are the `events` ones right before `Evicted`.
-- kind: check
WITH freed AS (
    SELECT
        run, rank, epoch, seq,
        count(*) FILTER (pool = 'full') AS full_pages,
        count(*) FILTER (pool = 'swa') AS swa_pages,
        count(*) FILTER (pool = 'recurrent') AS states
    FROM pages
    WHERE event IN ('Removed', 'Tombstoned', 'Demoted') AND to_kind IN ('free', 'pending')
    GROUP BY ALL
), credited AS (
    SELECT evictions.run, evictions.rank, evictions.epoch, evictions.seq, sum(full_pages) AS freed_full, sum(swa_pages) AS freed_swa, sum(states) AS freed_states
    FROM freed
    ASOF JOIN evictions
        ON freed.run = evictions.run AND freed.rank = evictions.rank AND freed.epoch = evictions.epoch
        AND freed.seq < evictions.seq
    WHERE freed.seq >= evictions.seq - evictions.events
    GROUP BY ALL
)
SELECT
    run, rank, epoch, seq, asked_full, asked_swa, gained_full, gained_swa,
    coalesce(freed_full, 0)::BIGINT AS freed_full,
    coalesce(freed_swa, 0)::BIGINT AS freed_swa,
    gained_recurrent, coalesce(freed_states, 0)::BIGINT AS freed_states,
    events, cause
FROM evictions
LEFT JOIN credited USING (run, rank, epoch, seq)
WHERE gained_full <> coalesce(freed_full, 0) OR gained_swa <> coalesce(freed_swa, 0) OR gained_recurrent <> coalesce(freed_states, 0)
ORDER BY run, rank, seq

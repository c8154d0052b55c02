-- Runs, one row for each rank and epoch: what it was built with, how far it is loaded, and its labels.
--
-- The columns of the configuration are NULL where the journal begins at a snapshot and its `Opened` is gone, sizes also where
-- nothing can be as large: then what multiplies them fits 64 bits, and `opening_out_of_bounds` tells.
-- `closed` says that the epoch ended cleanly; `labels` are those of the journal and those given while loading.
-- kind: view 1
WITH loaded AS (
    SELECT run, rank, epoch, min(first_seq) AS first_seq, max(last_seq) AS last_seq, sum(events)::BIGINT AS events
    FROM loads
    GROUP BY ALL
), opened AS (
    SELECT * REPLACE (
        try_cast(page_size AS INTEGER)::BIGINT AS page_size,
        try_cast(full_pages AS INTEGER)::BIGINT AS full_pages,
        try_cast(swa_pages AS INTEGER)::BIGINT AS swa_pages,
        try_cast(host_pages AS INTEGER)::BIGINT AS host_pages,
        try_cast(recurrent_slots AS INTEGER)::BIGINT AS recurrent_slots,
        try_cast(window_tokens AS INTEGER)::BIGINT AS window_tokens,
        try_cast(window_need AS INTEGER)::BIGINT AS window_need,
        try_cast(rows AS INTEGER)::BIGINT AS rows,
        try_cast(context_pages AS INTEGER)::BIGINT AS context_pages
    )
    FROM openings
    QUALIFY row_number() OVER (PARTITION BY run, rank, epoch ORDER BY seq) = 1
), closed AS (
    SELECT run, rank, epoch, max(seq) AS closed_seq
    FROM digests
    WHERE event = 'Closed'
    GROUP BY ALL
), labelled AS (
    SELECT DISTINCT ON (run, rank, epoch, key) run, rank, epoch, key, value
    FROM (
        SELECT run, rank, epoch, key, value, 0 AS late FROM opened_labels
        UNION ALL
        SELECT run, rank, epoch, key, value, 1 AS late FROM loaded JOIN labels USING (run)
    )
    ORDER BY late DESC
), maps AS (
    SELECT run, rank, epoch, map_from_entries(list((key, value) ORDER BY key)) AS labels
    FROM labelled
    GROUP BY ALL
)
SELECT
    loaded.*,
    coalesce(closed_seq = last_seq, false) AS closed,
    opened.seq AS opened_seq,
    opened.* EXCLUDE (run, rank, epoch, seq, step),
    coalesce(labels, MAP {}) AS labels
FROM loaded
LEFT JOIN opened USING (run, rank, epoch)
LEFT JOIN closed USING (run, rank, epoch)
LEFT JOIN maps USING (run, rank, epoch)

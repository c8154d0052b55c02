-- Duplicate mappings: two FULL pages were mapped to one SWA page at the same time, or one FULL page to two (J22, A35).
-- kind: check
WITH spans AS (
    SELECT *, coalesce(cleared_seq, 9223372036854775807) AS gone_seq
    FROM mapping_spans
), shared AS (
    SELECT
        spans.*,
        lag(full_page) OVER uses AS other_full_page,
        lag(set_seq) OVER uses AS other_set_seq,
        lag(gone_seq) OVER uses AS other_gone_seq
    FROM spans
    WINDOW uses AS (PARTITION BY run, rank, epoch, swa_page ORDER BY set_seq, place)
)
SELECT run, rank, epoch, set_seq AS seq, swa_page, full_page, NULL AS other_swa_page, other_full_page, other_set_seq
FROM shared
WHERE other_gone_seq > set_seq AND other_full_page <> full_page
UNION ALL
SELECT run, rank, epoch, cleared_seq AS seq, next_swa_page, full_page, swa_page, full_page, set_seq
FROM spans
WHERE next_swa_page IS NOT NULL
ORDER BY run, rank, seq, full_page

-- Mapping spans: which FULL page was mapped to which SWA page, from `set_seq` until `cleared_seq` (NULL: to the end).
--
-- `next_swa_page` is what took its place where the mapping was set again without being cleared.
-- kind: view 2
WITH packed AS (
    SELECT (book << 32) + full_page + 2147483648 AS key, swa_page, seq, place
    FROM mappings
    JOIN books USING (run, rank, epoch)
), spanned AS (
    SELECT
        packed.*,
        lead(seq) OVER history AS cleared_seq,
        lead(swa_page) OVER history AS next_swa_page
    FROM packed
    WINDOW history AS (PARTITION BY key ORDER BY seq, place)
)
SELECT
    run, rank, epoch,
    (key & 4294967295) - 2147483648 AS full_page,
    swa_page,
    seq AS set_seq,
    place,
    cleared_seq,
    next_swa_page
FROM spanned
JOIN books ON book = key >> 32
WHERE swa_page IS NOT NULL

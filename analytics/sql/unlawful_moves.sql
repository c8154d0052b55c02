-- Unlawful moves: pages that an event takes from an account which the event before it did not give them to.
--
-- The previous event of the same page decides who must have it (`previous_kind`, `previous_holder`). A restart
-- (`Opened`) puts every page to `free` and page 0 to `reserved`, so a page's history begins anew with each epoch;
-- `previous_seq` is then that of the `Opened`. Where the journal begins at a snapshot, or events are missing in
-- between (`Gap`), nobody can say who has a page, and its first move is not judged.
-- kind: view 2
WITH packed AS (
    -- One integer for the page and one for each account: a sort costs by the width of its rows.
    SELECT
        (book * 4 + pool_code(pool)) * 4294967296 + page + 2147483648 AS key,
        seq,
        place,
        account_code(from_kind, from_holder) AS giver,
        account_code(to_kind, to_holder) AS taker
    FROM pages
    JOIN books USING (run, rank, epoch)
), moved AS (
    SELECT packed.*, lag(seq) OVER history AS moved_seq, lag(taker) OVER history AS holder
    FROM packed
    WINDOW history AS (PARTITION BY key ORDER BY seq, place)
), suspect AS MATERIALIZED (
    SELECT *
    FROM moved
    WHERE moved_seq IS NULL OR giver <> holder
), judged AS (
    SELECT
        run,
        rank,
        epoch,
        pool_of((key >> 32) & 3) AS pool,
        (key & 4294967295) - 2147483648 AS page,
        seq,
        place,
        giver,
        coalesce(moved_seq, opened_seq) AS previous_seq,
        CASE
            WHEN moved_seq IS NOT NULL THEN holder
            ELSE account_code(CASE WHEN page = 0 THEN 'reserved' ELSE 'free' END, 0)
        END AS expected
    FROM suspect
    JOIN books ON book = key >> 34
    WHERE coalesce(moved_seq, opened_seq) IS NOT NULL
        AND (gaps IS NULL OR len(list_filter(gaps, lambda gap: gap > coalesce(moved_seq, 0) AND gap <= seq)) = 0)
)
SELECT
    pages.*,
    previous_seq,
    account_kind(expected) AS previous_kind,
    expected >> 3 AS previous_holder
FROM (SELECT * FROM judged WHERE giver <> expected) AS unlawful
JOIN pages USING (run, rank, epoch, seq, pool, place)

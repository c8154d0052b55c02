-- Frees under a running step: pages were given back, or a request ended, while the device could still read them (R151).
--
-- Between its two `Stepped` events a step reads all FULL pages of its requests, their paths in the tree included, and the
-- SWA pages of the window before the first token that each of them writes. A reclaim may pass below that window; whatever
-- else takes pages from these requests, or from the nodes of their paths, has to wait until the step has ended.
-- kind: check
WITH RECURSIVE given_back AS (
    SELECT run, rank, epoch, seq, event::VARCHAR AS event, cause, pool::VARCHAR AS pool, from_kind, from_holder, count(*) AS pages
    FROM pages
    WHERE from_kind IN ('request', 'tree') AND to_kind IN ('free', 'pending')
    GROUP BY ALL
    UNION ALL
    SELECT run, rank, epoch, seq, event::VARCHAR, cause, NULL, 'request', request, 0
    FROM endings
), ordered AS (
    -- A device runs its steps in order: what began before a step that has ended has ended too.
    SELECT
        run, rank, epoch, number, began_seq,
        row_number() OVER began AS place,
        min(ended_seq) OVER (began ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS ended_seq
    FROM steps
    WHERE began_seq IS NOT NULL
    WINDOW began AS (PARTITION BY run, rank, epoch ORDER BY began_seq)
), counted AS (
    SELECT *, sum(began) OVER so_far AS begun, sum(ended) OVER so_far AS done
    FROM (
        SELECT run, rank, epoch, began_seq AS seq, 1 AS began, 0 AS ended FROM ordered
        UNION ALL
        SELECT run, rank, epoch, ended_seq, 0, 1 FROM ordered WHERE ended_seq IS NOT NULL
        UNION ALL
        SELECT DISTINCT run, rank, epoch, seq, 0, 0 FROM given_back
    )
    WINDOW so_far AS (PARTITION BY run, rank, epoch ORDER BY seq)
), busy AS (
    -- The steps that run at an event. No device has more than 64 waiting, whatever a journal says.
    SELECT run, rank, epoch, seq, unnest(range(greatest(done, begun - 64)::BIGINT + 1, begun::BIGINT + 1)) AS place
    FROM counted
    WHERE began = 0 AND ended = 0 AND begun > done
), under AS MATERIALIZED (
    SELECT
        given_back.*, number, began_seq, step_spans.request, page_size,
        greatest(0, start - window_tokens + 1) AS reads_from
    FROM given_back
    JOIN busy USING (run, rank, epoch, seq)
    JOIN ordered USING (run, rank, epoch, place)
    JOIN step_spans USING (run, rank, epoch, number)
    JOIN runs USING (run, rank, epoch)
), seats AS (
    SELECT run, rank, epoch, request, seq AS seated_seq, node, prefix AS ends FROM admissions
    UNION ALL
    SELECT run, rank, epoch, request, seq, node, protected FROM repointings
), seated AS (
    -- Where the path of a running request ended when a node gave pages back.
    SELECT DISTINCT ON (run, rank, epoch, seq, number, request, pool, from_holder) under.*, node, ends
    FROM under
    JOIN seats USING (run, rank, epoch, request)
    WHERE from_kind = 'tree' AND seated_seq < seq
    ORDER BY seated_seq DESC
), states AS MATERIALIZED (
    FROM node_states
), paths AS (
    FROM seated
    UNION ALL
    SELECT paths.* EXCLUDE (node, ends), states.parent, ends - full_pages * page_size
    FROM paths
    JOIN states
        ON states.run = paths.run AND states.rank = paths.rank AND states.epoch = paths.epoch
        AND states.node = paths.node
        AND states.seq < paths.seq AND (until_seq IS NULL OR until_seq >= paths.seq)
    WHERE paths.node > 0 AND paths.node <> from_holder
), taken AS (
    SELECT under.* EXCLUDE (page_size, reads_from)
    FROM under
    LEFT JOIN reclaims USING (run, rank, epoch, seq)
    WHERE from_kind = 'request' AND from_holder = under.request AND (event <> 'Reclaimed' OR stop > reads_from)
    UNION ALL
    SELECT paths.* EXCLUDE (page_size, reads_from, node, ends)
    FROM paths
    WHERE node = from_holder AND (pool = 'full' OR (pool = 'swa' AND ends > reads_from))
)
SELECT run, rank, epoch, seq, event, cause, number AS running_step, began_seq, request, pool, pages
FROM taken
ORDER BY run, rank, seq, pool, request

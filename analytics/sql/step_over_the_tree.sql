-- Steps over the tree: a device step began that writes tokens of a request which the tree holds.
--
-- What a row protects are pages of the tree, which others read: a request writes from there on.
-- kind: check
WITH seats AS (
    SELECT run, rank, epoch, request, seq AS seated_seq, prefix AS protected FROM admissions
    UNION ALL
    SELECT run, rank, epoch, request, seq, protected FROM repointings
)
SELECT step_spans.run, step_spans.rank, step_spans.epoch, step_spans.seq, number AS running_step, step_spans.request, start, protected
FROM step_spans
ASOF JOIN seats
    ON step_spans.run = seats.run AND step_spans.rank = seats.rank AND step_spans.epoch = seats.epoch
    AND step_spans.request = seats.request AND step_spans.seq > seated_seq
WHERE start < protected
ORDER BY step_spans.run, step_spans.rank, step_spans.seq, step_spans.request

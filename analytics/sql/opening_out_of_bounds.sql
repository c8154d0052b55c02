-- Openings out of bounds: a rank says that it was built with a word that nobody knows, or a size that nothing can have (R14).
--
-- Pages and slots are numbered in 32 bits, page 0 of each pool coming on top. What a word demands of other fields is not asked here.
-- kind: check anywhere
WITH stated AS (
    SELECT run, rank, epoch, seq, unnest([
        {field: 'route', value: route, possible: route IN ('unified', 'radix', 'swa_chunk', 'chunk', 'legacy', 'recorded', 'recorded_full')},
        {field: 'key_mode', value: key_mode, possible: key_mode IN ('raw', 'bigram')},
        {field: 'formula', value: formula, possible: formula IN ('rfc', 'tight')},
        {field: 'tombstone_leaf', value: tombstone_leaf, possible: tombstone_leaf IN ('veto', 'materialise')},
        {field: 'swa_victims', value: swa_victims, possible: swa_victims IN ('lru', 'use')},
        {field: 'eviction', value: eviction, possible: eviction IN ('lru', 'slru', 'priority')},
        {field: 'recurrent_mode', value: recurrent_mode, possible: recurrent_mode IN ('', 'base', 'extra_buffer')},
        {field: 'host_write', value: host_write, possible: host_write IN ('through', 'back')},
        {field: 'track_interval', value: track_interval::VARCHAR, possible: track_interval >= 0}
    ], recursive := true)
    FROM openings
    UNION ALL
    SELECT run, rank, epoch, seq, field, value::VARCHAR, value BETWEEN least AND (1::BIGINT << 31) - 1
    FROM (
        SELECT run, rank, epoch, seq, unnest([
            {field: 'ranks', value: ranks, least: 1},
            {field: 'page_size', value: page_size, least: 1},
            {field: 'full_pages', value: full_pages, least: 1},
            {field: 'swa_pages', value: swa_pages, least: (route IN ('unified', 'swa_chunk', 'legacy', 'recorded'))::INTEGER},
            {field: 'window_tokens', value: window_tokens, least: (route IN ('unified', 'swa_chunk', 'legacy', 'recorded'))::INTEGER},
            {field: 'window_need', value: window_need, least: (route IN ('unified', 'swa_chunk', 'legacy', 'recorded'))::INTEGER},
            {field: 'rows', value: rows, least: 1},
            {field: 'context_pages', value: context_pages, least: 1},
            {field: 'stride', value: stride, least: 1},
            {field: 'recurrent_slots', value: recurrent_slots, least: 0},
            {field: 'host_pages', value: host_pages, least: 0},
            {field: 'host_threshold', value: host_threshold, least: 1},
            {field: 'last FULL slot', value: (greatest(full_pages, 0)::HUGEINT + 1) * greatest(page_size, 1) - 1, least: 0},
            {field: 'last SWA slot', value: (greatest(swa_pages, 0)::HUGEINT + 1) * greatest(page_size, 1) - 1, least: 0},
            {field: 'last slot of the host', value: (greatest(host_pages, 0)::HUGEINT + 1) * greatest(page_size, 1) - 1, least: 0}
        ], recursive := true)
        FROM openings
    )
)
SELECT run, rank, epoch, seq, field, value
FROM stated
WHERE NOT possible
ORDER BY run, rank, seq, field

"""Streams of requests: traces as they stand, conversations as they are seeded."""

from pathlib import Path

import numpy as np
import pytest

from radixledger.tools.streams import BadTrace, ConversationStream, Shape, read_trace

SAMPLE = Path(__file__).parent.parent / "data" / "mooncake_sample.jsonl"


def test_equal_blocks_of_a_trace_have_equal_tokens_and_no_others_do(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text(
        '{"timestamp": 0, "input_length": 1024, "output_length": 1, "hash_ids": [9, 7]}\n'
        '{"timestamp": 5, "input_length": 700, "output_length": 2, "hash_ids": [9, 8]}\n'
    )
    first, second = read_trace(trace)
    assert first.prompt.dtype == np.int32
    assert (len(first.prompt), len(second.prompt)) == (1024, 700)
    assert (first.prompt[:512] == second.prompt[:512]).all()
    assert not set(first.prompt[512:].tolist()) & set(second.prompt[512:].tolist())


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ('{"input_length": 512, "output_length": 1}', "hash_ids"),
        ('{"input_length": "x", "output_length": 1, "hash_ids": []}', "input_length"),
        ('{"input_length": 1024, "output_length": 1, "hash_ids": [1]}', "hash_ids"),
        ('{"input_length": 0, "output_length": 1, "hash_ids": []}', "input_length"),
        ("not json", "line 2"),
        ('{"deep": ' + "[" * 100_000 + "]" * 100_000 + "}", "line 2"),
    ],
)
def test_a_bad_line_of_a_trace_is_named_with_file_line_and_field(
    tmp_path: Path, line: str, names: str
) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text(
        '{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [0]}\n' + line + "\n"
    )
    with pytest.raises(BadTrace, match=r"trace\.jsonl, line 2") as refused:
        list(read_trace(trace))
    assert names in str(refused.value)


def test_the_sample_trace_reads_whole() -> None:
    jobs = list(read_trace(SAMPLE))
    assert len(jobs) == 60
    assert len({job.rid for job in jobs}) == 60


def test_a_conversation_grows_by_its_answers_and_shares_the_system_prompt() -> None:
    shape = Shape(conversations=3, turns=2, system=10, user=5, answer=4, active=2)
    stream = ConversationStream(shape, seed=1)
    first, other = stream.take(), stream.take()
    assert first is not None and other is not None  # noqa: PT018
    assert stream.take() is None
    assert (first.prompt[:10] == other.prompt[:10]).all()
    answer = np.arange(4, dtype=np.int32)
    stream.ended(first, answer)
    second = stream.take()
    assert second is not None
    assert (second.prompt[:15] == first.prompt).all()
    assert (second.prompt[15:19] == answer).all()


def test_every_conversation_has_all_its_turns_and_the_same_seed_gives_the_same_stream() -> None:
    def whole(seed: int) -> list[tuple[str, bytes]]:
        stream, taken = ConversationStream(Shape(5, 3, 7, 3, 2, 2), seed), []
        while (job := stream.take()) is not None:
            taken.append((job.rid, job.prompt.tobytes()))
            stream.ended(job, np.zeros(2, np.int32))
        return taken

    assert len(whole(3)) == 15
    assert whole(3) == whole(3)
    assert whole(3) != whole(4)

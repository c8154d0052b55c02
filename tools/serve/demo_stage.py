"""What the parts of the demo share: a head for each, serving with a journal, and how a part fails.

Not a part itself. Rule: a part fails when something that it is there to show did not happen.
"""

from collections.abc import Sequence
from pathlib import Path

from radixledger.tools.console import FINDINGS, CommandFailure, progress, waiting
from radixledger.tools.opening import Recording
from radixledger.tools.printable import say
from radixledger.tools.serve.engine import Then, nothing
from radixledger.tools.serve.loader import Checkpoint
from radixledger.tools.serve.offline import Report, Setup, make_runner, serve_lines, sizes_of
from radixledger.tools.serve.requests import Request, Result


def serve(
    model: Checkpoint, setup: Setup, run: Path, lines: Sequence[Request], total: int, then: Then = nothing
) -> tuple[Report, list[Result]]:
    """Serve `lines`, and what they lead to, with a journal in `run`; both runs of the demo share one key."""
    sizes = sizes_of(setup, model.spec, lines)
    with waiting(
        f"compiling the model for {setup.running} requests and {setup.chunk_tokens} prompt tokens a step"
    ):
        runners = [make_runner(setup, sizes.config, model) for _ in range(setup.ranks)]
    recording = Recording(run, key_file=run.parent / "redaction.key")
    results: list[Result] = []
    with progress("serve", total) as advance:

        def write(result: Result) -> None:
            results.append(result)
            advance(1)

        report = serve_lines(setup, sizes, model.spec.eos_ids, recording, runners, lines, write, then)
    return report, results


def cached(results: Sequence[Result]) -> int:
    """Prompt tokens that were found in the cache."""
    return sum(result.cached_tokens for result in results)


def title(text: str, *explained: str) -> None:
    """The head of a part."""
    say(f"\n{text}")
    for line in explained:
        say(f"   {line}")
    say()


def failed(reason: str) -> CommandFailure:
    """The demo did not show what it is there to show."""
    return CommandFailure(f"the demo failed: {reason}", FINDINGS)


def write_lines(path: Path, lines: Sequence[bytes]) -> None:
    """A file of lines that carry their ends."""
    path.write_bytes(b"".join(lines))

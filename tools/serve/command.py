"""`radixledger serve`: requests from a file through the engine, results into a file, a journal into a folder.

Exit codes: 0 when every request was served, 1 when some were refused, 2 for a command that cannot be run as asked, 3 for files
that cannot be read.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import click
import msgspec

from radixledger.journal.events import Config
from radixledger.journal.folder import listing, rank_folder
from radixledger.journal.retention import Retention
from radixledger.journal.sizes import BadConfig
from radixledger.journal.units import Rank
from radixledger.journal.writer import Policy
from radixledger.tools.console import (
    FINDINGS,
    UNREADABLE,
    USAGE,
    CommandFailure,
    GivenPath,
    bytes_text,
    count_text,
    examples,
    exit_with,
    json_flag,
    print_facts,
    print_json,
    progress,
    remark,
    seconds_text,
    waiting,
)
from radixledger.tools.lines import LineTooLong, lines_of
from radixledger.tools.near import near
from radixledger.tools.numbers import INT32_MAX, Whole
from radixledger.tools.opening import MOST_RANKS, Recording
from radixledger.tools.places import SourceFile, check_key_place, check_place, check_run_place, new_file
from radixledger.tools.policy_options import Policies, policy_options
from radixledger.tools.route_options import Asked, route_for, route_options
from radixledger.tools.serve.config_json import spec_from_config
from radixledger.tools.serve.loader import Checkpoint, CheckpointError, load_checkpoint, read_spec
from radixledger.tools.serve.offline import (
    Line,
    NotServable,
    Report,
    Setup,
    make_runner,
    serve_lines,
    sizes_of,
)
from radixledger.tools.serve.requests import Bounds, Result, TraceLine, encode_result, read_requests
from radixledger.tools.serve.result_file import ResultFile
from radixledger.tools.serve.spec import ConfigError, ModelSpec
from radixledger.tools.serve.tiny import Tiny, load_tiny, tiny_config
from radixledger.tools.window_evidence import (
    COMPARE,
    WindowRun,
    check_comparable,
    examined,
    recording_of,
    show,
    variants,
    windows_option,
)

BUILT_IN = "tiny"
SHOWN_REFUSALS = 20
SHOWN_RID = 60

_COUNT = Whole(1, INT32_MAX)


@click.command(
    "serve",
    epilog=examples(
        "radixledger serve --offline requests.jsonl --output results.jsonl --model-path tiny "
        "--journal run --unified",
        "radixledger serve --offline requests.jsonl --output cold.jsonl --model-path tiny "
        "--journal cold --disable-radix-cache",
        "radixledger serve --offline requests.jsonl --output pairs.jsonl --model-path tiny --journal pairs "
        "--unified --key-mode bigram --lift-bigram --free-out-of-window compare",
        "radixledger replay verify run",
    ),
)
@click.option("--offline", "requests_path", type=SourceFile(),
              metavar="REQUESTS.jsonl", help="Serve the requests of this file, one JSON object a line.")  # fmt: skip
@click.option("--output", type=new_file, required=True,
              metavar="RESULTS.jsonl", help="Where results go, one a line, in the order of the requests.")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace results that are there.")
@click.option("--model-path", required=True, metavar="DIR|tiny",
              help="A Hugging Face folder, or `tiny`: a small built-in Gemma 4.")  # fmt: skip
@click.option("--journal", "run", type=GivenPath(file_okay=False, path_type=Path), metavar="RUN",
              help="The folder of the run's journals; it must be new.")  # fmt: skip
@click.option("--resume-run", is_flag=True, help="Go on with an existing RUN, in a new epoch.")
@route_options
@policy_options
@windows_option
@click.option("--page-size", type=_COUNT, default=16, show_default=True, help="Tokens of a page.")
@click.option("--full-pages", type=_COUNT, help="FULL pages of a rank.  [default: 65,536 tokens]")
@click.option("--swa-pages", type=_COUNT, help="SWA pages of a rank.  [default: by the sizing rule]")
@click.option("--context-length", type=_COUNT, help="Tokens of a sequence at most.  [default: the model's]")
@click.option(
    "--dp-size", type=Whole(1, MOST_RANKS), default=1, show_default=True, help="Data-parallel ranks."
)
@click.option("--chunked-prefill-size", type=_COUNT, default=256, show_default=True,
              help="Prompt tokens of a step at most.")  # fmt: skip
@click.option("--max-running-requests", type=_COUNT, default=32, show_default=True,
              help="Requests of a rank that run at once.")  # fmt: skip
@click.option(
    "--force-miss", is_flag=True, help="Match nothing, cache nothing: what a run without hits gives."
)
@click.option("--commit-policy", type=click.Choice([policy.value for policy in Policy]), default=Policy.OPERATION.value,
              show_default=True, help="When the journal is written; `off` keeps none.")  # fmt: skip
@click.option("--tokens", type=click.Choice(["hashed", "plain"]), default="hashed", show_default=True,
              help="How prompts stand in the journal.")  # fmt: skip
@click.option("--key-file", type=GivenPath(dir_okay=False, path_type=Path),
              help="The redaction key.  [default: beside RUN]")  # fmt: skip
@click.option(
    "--snapshot-every",
    type=Whole(1),
    metavar="EVENTS",
    help="Events between two snapshots of a rank.  [default: none]",
)
@click.option("--keep-bytes", type=Whole(1), metavar="BYTES",
              help="Drop the oldest segments of a rank beyond this size, behind a snapshot.  [default: keep all]")  # fmt: skip
@click.option(
    "--window", type=Whole(0, INT32_MAX), help="The sliding window of the tiny model; 0: no layer slides."
)
@json_flag
def command(
    requests_path: Path | None, output: Path, force: bool, model_path: str, run: Path | None, resume_run: bool,
    asked: Asked, policies: Policies, windows: str, page_size: int, full_pages: int | None, swa_pages: int | None,
    context_length: int | None, dp_size: int, chunked_prefill_size: int, max_running_requests: int,
    force_miss: bool, commit_policy: str, tokens: str, key_file: Path | None, snapshot_every: int | None,
    keep_bytes: int | None, window: int | None, as_json: bool,
) -> None:  # fmt: skip
    """Serve requests from a file on a small real engine, with a journal of every page.

    Which cache serves follows from the model and from --unified and --disable-radix-cache; the answers are the same.
    Time is virtual: a step takes a millisecond, and an idle engine jumps to the next arrival.
    """
    recording = Recording(
        run, Policy(commit_policy), tokens, key_file, resume_run, snapshot_every, Retention(keep_bytes)
    )
    if requests_path is None:
        raise click.UsageError(
            "give --offline REQUESTS.jsonl: requests come from a file, HTTP is not built yet"
        )
    if output.exists() and output.samefile(requests_path):
        raise click.UsageError(f"{output} holds the requests; results need a file of their own")
    _check_journal(recording)
    check_place(output, force=force, to_be=run, replaced=False)
    hybrid_swa = _spec(model_path, window).window_tokens is not None
    if windows == COMPARE:
        check_comparable(recording, windowed=hybrid_swa)
    setup = Setup(
        page_size, full_pages, swa_pages, dp_size, chunked_prefill_size, max_running_requests, context_length,
        force_miss, route_for(asked, hybrid_swa=hybrid_swa, page_size=page_size), asked.key_mode, windows != "off",
        policies,
    )  # fmt: skip
    model = _load(model_path, window)
    try:
        lines = list(read_requests(lines_of(requests_path), Bounds(model.spec.vocab_size, dp_size)))
    except LineTooLong as error:
        raise CommandFailure(str(error)) from error
    if lines and all(isinstance(line, TraceLine) for line in lines):
        raise CommandFailure(
            f"{requests_path} is a trace, with hashes in the place of tokens: `radixledger drive {requests_path} --journal RUN`"
            " sends it through the cache, without a model",
            UNREADABLE,
        )
    if windows == COMPARE:
        if _compare(setup, recording, model, lines, output, as_json=as_json):
            exit_with(FINDINGS)
        return
    with ResultFile(output) as file:
        report, results = _serve(setup, recording, model, lines, file)
    refusals = _refusals(results)
    _tell_refusals(refusals)
    _tell(report, setup, recording, as_json=as_json)
    if refusals:
        exit_with(FINDINGS)


def _compare(
    setup: Setup, recording: Recording, model: Checkpoint, lines: list[Line], output: Path, *, as_json: bool
) -> bool:
    """Serve the same requests with giving back and without (R273); `output` has the results of the first run.

    Whether some were refused, in any run.
    """
    assert recording.run is not None, "what is compared is recorded"
    runs: list[WindowRun] = []
    any_refused = False
    for variant in variants(setup.key_mode):
        mine = setup._replace(key_mode=variant.key_mode, free_out_of_window=variant.free_out_of_window)
        apart = recording_of(variant, recording)
        assert apart.run is not None, "what is compared is recorded"
        with nullcontext() if runs else ResultFile(output) as file:
            report, results = _serve(mine, apart, model, lines, file)
        if refusals := _refusals(results):
            any_refused = True
            remark(f"{variant.name}:")
            _tell_refusals(refusals)
        answers = [result.output_ids for result in results]
        config = sizes_of(mine, model.spec, lines).config
        runs.append(examined(apart.run, variant.name, config, report.cached_tokens, answers))
    show(recording.run, runs, as_json=as_json)
    return any_refused


def _check_journal(recording: Recording) -> None:
    """Refuse what `JournalWriter` would refuse, before a model is loaded for it."""
    check_key_place(recording.key_file, recording.run)
    if recording.policy is Policy.OFF:
        return
    if recording.run is None:
        raise click.UsageError("give --journal RUN, or --commit-policy off to keep none")
    check_run_place(recording.run)
    if not recording.resume and listing(rank_folder(recording.run, Rank(0))).segments:
        raise click.UsageError(
            f"{recording.run} holds a run already: give --resume-run to go on with it, or another folder"
        )


def _tiny(window: int | None) -> Tiny:
    return Tiny() if window is None else Tiny(window_tokens=window)


def _spec(model_path: str, window: int | None) -> ModelSpec:
    """What the model is, before its weights are read: enough to refuse what it cannot be served with."""
    if model_path == BUILT_IN:
        return spec_from_config(tiny_config(_tiny(window)))
    if window is not None:
        raise click.UsageError(
            "--window is for --model-path tiny; other models have the window they were made with"
        )
    if not Path(model_path).is_dir():
        why = (
            "this is a file, and a model is a folder"
            if Path(model_path).exists()
            else "there is no such folder"
        )
        hint = near(model_path, [BUILT_IN], f"; --model-path {BUILT_IN} is a model that is built in")
        raise CommandFailure(f"--model-path {model_path}: {why}{hint}", UNREADABLE)
    with _told_plainly():
        return read_spec(Path(model_path))


def _load(model_path: str, window: int | None) -> Checkpoint:
    if model_path == BUILT_IN:
        return load_tiny(_tiny(window))
    with _told_plainly():
        return load_checkpoint(Path(model_path))


@contextmanager
def _told_plainly() -> Iterator[None]:
    """A checkpoint that cannot be read is unreadable; one that asks for what is not built is wrong usage."""
    try:
        yield
    except CheckpointError as error:
        raise CommandFailure(str(error), UNREADABLE) from error
    except ConfigError as error:
        raise CommandFailure(str(error), USAGE) from error


def _serve(
    setup: Setup, recording: Recording, model: Checkpoint, lines: list[Line], file: ResultFile | None
) -> tuple[Report, list[Result]]:
    """Serve the lines into `file`, if there is one; returns the report and the results."""
    results: list[Result] = []
    try:
        sizes = sizes_of(setup, model.spec, lines)
        remark(f"route {setup.route}: {setup.ranks} rank{'s' * (setup.ranks > 1)} of {_shape(sizes.config)}")
        with waiting("compiling the model"):
            runners = [make_runner(setup, sizes.config, model) for _ in range(setup.ranks)]
        with progress("serving", len(lines)) as advance:

            def write(result: Result) -> None:
                if file is not None:
                    file.write(encode_result(result))
                results.append(result)
                advance(1)

            report = serve_lines(setup, sizes, model.spec.eos_ids, recording, runners, lines, write)
    except (BadConfig, NotServable) as error:
        raise CommandFailure(str(error), USAGE) from error
    return report, results


def _shape(config: Config) -> str:
    return (
        f"{count_text(config.full_pages)} FULL and {count_text(config.swa_pages)} SWA pages of {config.page_size} tokens, "
        f"window {config.window_tokens}"
        if config.window_tokens
        else f"{count_text(config.full_pages)} FULL pages of {config.page_size} tokens"
    )


def _refusals(results: Sequence[Result]) -> list[Result]:
    return [result for result in results if result.finish_reason == "refused"]


def _tell_refusals(refusals: Sequence[Result]) -> None:
    for result in refusals[:SHOWN_REFUSALS]:
        remark(
            f"refused: {result.error}"
            if result.rid is None
            else f"refused {_shown(result.rid)}: {result.error}"
        )
    if len(refusals) > SHOWN_REFUSALS:
        remark(f"refused: {len(refusals) - SHOWN_REFUSALS} more; the results say why")


def _tell(report: Report, setup: Setup, recording: Recording, *, as_json: bool) -> None:
    if as_json:
        print_json(
            msgspec.to_builtins(report) | {"hit_rate": report.hit_rate, "journal": _journal(recording)}
        )
    else:
        print_facts(facts_of(report, setup))
        if _journal(recording):
            remark(f"next: radixledger replay verify {recording.run}")


def _journal(recording: Recording) -> str | None:
    return None if recording.policy is Policy.OFF else str(recording.run)


def facts_of(report: Report, setup: Setup) -> dict[str, object]:
    """The report as people read it."""
    reasons = ", ".join(
        f"{count_text(count)} {reason}" for reason, count in sorted(report.finish_reasons.items())
    )
    million = report.bytes_per_million_requests
    journal = "none"
    if million is not None:
        journal = (
            f"{count_text(report.journal_events)} events, {bytes_text(report.journal_bytes)} "
            f"(about {bytes_text(million)} per million such requests)"
        )
    return {
        "route": report.route,
        "requests": f"{count_text(report.requests)} ({reasons})" if reasons else "0",
        "prompt tokens": count_text(report.prompt_tokens),
        "of them cached": f"{count_text(report.cached_tokens)} (hit rate {report.hit_rate:.1%})",
        "output tokens": count_text(report.output_tokens),
        "steps": f"{count_text(report.steps)} on {setup.ranks} rank{'s' * (setup.ranks > 1)}",
        "FULL pages evicted": count_text(report.full_pages_evicted),
        "SWA pages released": f"{count_text(report.swa_pages_released)} (evicted, or out of the window)",
        "tombstones, heals": f"{count_text(report.tombstones)}, {count_text(report.heals)}",
        "retractions": count_text(report.retractions),
        "journal": journal,
        "serving took": f"{seconds_text(report.serve_s)}, not counting start-up and compiling",
    }


def _shown(rid: str) -> str:
    """A request id as a line of a terminal bears it; the results file has the whole of it."""
    return repr(rid) if len(rid) <= SHOWN_RID else f"{rid[:SHOWN_RID]!r}..."

"""Makes the golden fixture `gemma4_tiny/` with the reference implementation; for development only.

The weights are those of the built-in checkpoint under another seed, so that the fixture can be made again bit by bit; the reference
loads them, saves them in its own spelling, and generates greedily in float32 on one CPU thread. Run it in an environment
of its own, where neither the project nor its tests ever look:

    pip install -e '.[serve]' torch==2.13.0 transformers==5.24.0
    python tests/golden/make_gemma4_golden.py
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch  # type: ignore[import-not-found]
import transformers  # type: ignore[import-not-found]

from radixledger.tools.serve.tiny import Tiny, write_tiny

SEED = 22
"""Of the first 39 the one whose closest first and second id lie farthest apart: 0.004, rounding being 0.0003."""
PROMPT_LENGTHS = (5, 40, 100, 256)
NEW_TOKENS = 64
FOLDER = Path(__file__).parent / "gemma4_tiny"


def prompt(length: int) -> list[int]:
    """Return ids that a linear congruence draws, none of them special."""
    ids, state = [], length
    for _ in range(length):
        state = (state * 1_103_515_245 + 12_345) % 2**31
        ids.append(3 + (state >> 8) % 509)
    return ids


def main() -> None:
    """Write the folder, and one JSON file of prompts, ids and top-2 gaps beside the first logits."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as made:
        write_tiny(Path(made), Tiny(seed=SEED))
        model = transformers.Gemma4ForCausalLM.from_pretrained(
            made, dtype=torch.float32, attn_implementation="eager"
        )
    model.generation_config.eos_token_id = None
    cases, first = [], []
    for length in PROMPT_LENGTHS:
        ids = prompt(length)
        out: Any = model.generate(
            torch.tensor([ids]),
            attention_mask=torch.ones(1, length, dtype=torch.long),
            max_new_tokens=NEW_TOKENS,
            do_sample=False,
            output_logits=True,
            return_dict_in_generate=True,
        )
        best = torch.stack(out.logits).squeeze(1).topk(2).values
        gap = float((best[:, 0] - best[:, 1]).min())
        first.append(out.logits[0][0].numpy())
        new = out.sequences[0, length:].tolist()
        cases.append({"prompt": ids, "new_ids": new, "smallest_gap": round(gap, 6)})
    model.generation_config.eos_token_id = 1
    model.to(torch.bfloat16).save_pretrained(FOLDER)
    (FOLDER / "model.safetensors").chmod(0o644)
    np.save(FOLDER / "first_logits.npy", np.stack(first).astype(np.float32))
    made_with = {"torch": torch.__version__, "transformers": transformers.__version__, "seed": SEED}
    (FOLDER / "golden.json").write_text(json.dumps({"made_with": made_with, "cases": cases}) + "\n")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Computes the reference results that Tenon's tests compare with, or checks that the committed ones still hold.

    make_reference.py MODEL.gguf            writes smollm2.json and smollm2_logits.npz beside this file
    make_reference.py MODEL.gguf --check    computes them again and compares

Every file in prompts/ is a prompt, its bytes taken raw. For each: its token ids, the mean negative log likelihood of
its tokens after the first, the logits for the token that would follow (all of them, in the .npz), and a greedy
continuation with the margin (first minus second logit) of each of its choices. `long` has, for every position too, the
token that the model puts first, its margin, and the likelihood of the token that does follow.
Needs tests/requirements.txt; takes less than a minute on two cores, and 3 GB of memory.
"""

import argparse
import hashlib
import json
import pathlib
import sys
import zipfile

import numpy as np

from gguf_tokenizer import GgufTokenizer
from llama import KvCache, Llama, log_softmax

HERE = pathlib.Path(__file__).resolve().parent
RESULTS, LOGITS = HERE / "smollm2.json", HERE / "smollm2_logits.npz"
GREEDY_TOKENS = 24
TOP = 10
PER_POSITION = "long"  # the prompt that gets results for every position


def first_and_margin(logits):
    """The id of the largest logit (the lowest id among equals) and how far it lies above the second largest."""
    second, first = np.partition(logits, -2)[-2:]
    return int(np.argmax(logits)), float(first - second)


def greedy_continuation(model, logits, cache):
    """The ids of GREEDY_TOKENS choices of the largest logit, and each choice's margin; nothing ends it early."""
    ids, margins = [], []
    while True:
        token, margin = first_and_margin(logits)
        ids.append(token)
        margins.append(margin)
        if len(ids) == GREEDY_TOKENS:
            return ids, margins
        logits = model.logits(model.hidden([token], cache))[0]


def reference_of(model, tokenizer, text, per_position):
    """The results for one prompt, and the logits [v] for the token after it."""
    ids = tokenizer.encode(text)
    cache = KvCache()
    all_logits = model.logits(model.hidden(ids, cache))  # [t, v]
    following = ids[1:]
    nll = -log_softmax(all_logits[:-1])[np.arange(len(following)), following]
    last = all_logits[-1]
    top = np.argsort(-last, kind="stable")[:TOP]
    greedy, margins = greedy_continuation(model, last, cache)
    result = {
        "tokens": ids,
        "mean_nll": float(nll.mean()) if following else None,
        "top": [[int(id), float(last[id])] for id in top],
        "greedy": greedy,
        "greedy_margins": margins,
        "greedy_text": tokenizer.decode(greedy),
    }
    if per_position:
        firsts = [first_and_margin(row) for row in all_logits]
        likelihoods = [*map(float, nll), None]
        result["positions"] = [[*first, likelihood] for first, likelihood in zip(firsts, likelihoods, strict=True)]
    return result, last.astype(np.float32)


def compute(model_path, dtype):
    """All results, as they are written: (the JSON document, {prompt: logits})."""
    model = Llama(model_path, dtype)
    tokenizer = GgufTokenizer(model.reader)
    document = {"model": pathlib.Path(model_path).name, "model_sha256": sha256_of(model_path), "prompts": {}}
    logits = {}
    for path in sorted((HERE / "prompts").glob("*.txt")):
        name = path.stem
        result, logits[name] = reference_of(model, tokenizer, path.read_bytes().decode(), name == PER_POSITION)
        document["prompts"][name] = {"sha256": sha256_of(path), **result}
        print(f"{name}: {len(result['tokens'])} tokens, mean NLL {result['mean_nll']}, least greedy margin "
              f"{min(result['greedy_margins']):.3f}, goes on {result['greedy_text']!r}", flush=True)
    return document, logits


def sha256_of(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def rounded(value):
    """`value` with its floats cut to 9 significant digits: enough for every comparison, and easier on the eye."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def write(document, logits):
    # One line for each entry of a prompt: a change is then seen in a diff without its drowning in digits.
    prompts = [json.dumps(name) + ": {\n" + ",\n".join(
        f"{json.dumps(key)}: {json.dumps(item, ensure_ascii=False)}" for key, item in entry.items()) + "\n}"
        for name, entry in rounded(document["prompts"]).items()]
    head = "".join(f"{json.dumps(key)}: {json.dumps(document[key])},\n" for key in ("model", "model_sha256"))
    RESULTS.write_text("{\n" + head + '"prompts": {\n' + ",\n".join(prompts) + "\n}\n}\n", encoding="utf-8")
    np.savez_compressed(LOGITS, **logits)
    print(f"wrote {RESULTS} ({RESULTS.stat().st_size} bytes) and {LOGITS} ({LOGITS.stat().st_size} bytes)")


def differences(document, logits, tolerance=1e-6):
    """What the committed results say differently, as messages."""
    committed = json.loads(RESULTS.read_text(encoding="utf-8"))
    with np.load(LOGITS) as archive:
        committed_logits = dict(archive)
    if committed["model_sha256"] != document["model_sha256"]:
        return [f"the committed results are for another file: SHA-256 {committed['model_sha256']}"]
    if not committed["prompts"].keys() == committed_logits.keys() == document["prompts"].keys():
        return [f"the prompts differ: {sorted(committed['prompts'])}, logits of {sorted(committed_logits)}, "
                f"files {sorted(document['prompts'])}"]
    found = []
    for name, entry in document["prompts"].items():
        for key, item in entry.items():
            if not close(item, committed["prompts"][name].get(key), tolerance):
                found.append(f"{name}: {key} differs")
        error = nmse(committed_logits[name].astype(np.float64), logits[name].astype(np.float64))
        print(f"{name}: NMSE of the committed logits {error:.1e}")
        if not error <= tolerance ** 2:
            found.append(f"{name}: the committed logits differ, NMSE {error:.1e}")
    return found


def close(a, b, tolerance):
    """Whether two JSON values are equal, floats to within `tolerance` (relative above 1)."""
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= tolerance * max(1.0, abs(a))
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(close(x, y, tolerance) for x, y in zip(a, b))
    return a == b


def nmse(values, reference):
    return float(np.sum((values - reference) ** 2) / np.sum(reference ** 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="the GGUF file")
    parser.add_argument("--check", action="store_true", help="compare with the committed results; write nothing")
    parser.add_argument("--dtype", choices=["float64", "float32"], default="float64",
                        help="arithmetic to compute in; float32 with --check shows what rounding alone does")
    arguments = parser.parse_args()
    document, logits = compute(arguments.model, getattr(np, arguments.dtype))
    if not arguments.check:
        write(document, logits)
        return 0
    found = differences(document, logits)
    print("\n".join(found) if found else "the committed results hold")
    return 1 if found else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        sys.exit(f"make_reference: {error}")

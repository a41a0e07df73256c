#!/usr/bin/env python3
"""`tenon score` against the NumPy reference: is what Tenon computes right?

    reference_test.py TENON MODEL REFERENCE_DIR --precision exact|fast [--prompt NAME]... [-- TENON OPTIONS]

REFERENCE_DIR is tests/reference; options after `--` are handed to tenon (a device list, a plugin folder). What must
hold, for every prompt there or for those that --prompt names:

    both   the same token ids; a well-formed answer (all logits, finite, sorted; as many greedy tokens as asked for)
    exact  logits with NMSE <= 1e-6; mean_nll within 0.1%; the reference's choice wherever its margin is over 0.05, at
           each step of the greedy continuation and at each position of the long prompt
    fast   the reference's choice wherever its margin is over 0.5; over the long prompt, which must have 500 tokens or
           more, mean_nll within 1%

The margin is how far the reference's first logit lies above its second. A greedy continuation is compared up to the
first token that may and does differ: from there on the two continue different texts.
"""

import argparse
import hashlib
import json
import math
import pathlib
import subprocess
import sys

import numpy as np

NMSE_LIMIT = 1e-6  # exact
FREE_MARGIN = {"exact": 0.05, "fast": 0.5}  # up to this margin another choice is as good
NLL_LIMIT = {"exact": 1e-3, "fast": 1e-2}  # relative
POSITION_NLL_LIMIT = 0.05  # exact: of one token, absolute
LEAST_TOKENS = 500  # fewer say too little about mean_nll


class Score:
    """One answer of `tenon score --json`, checked for form; its fields under the command's own names."""

    def __init__(self, stdout, vocabulary, greedy_tokens, with_positions):
        answer = json.loads(stdout)
        self.tokens, self.mean_nll, self.greedy = answer["tokens"], answer["mean_nll"], answer["greedy"]
        ids = [id for id, _ in answer["top"]]
        logits = np.array([logit for _, logit in answer["top"]], dtype=np.float64)
        require(sorted(ids) == list(range(vocabulary)), f"top does not list each of {vocabulary} ids once")
        require(np.isfinite(logits).all(), "top has logits that are not finite")
        require((np.diff(logits) <= 0).all(), "top is not in falling order")
        self.first = ids[0]
        self.logits = np.empty(vocabulary)
        self.logits[ids] = logits
        require(len(self.greedy) == greedy_tokens, f"greedy has {len(self.greedy)} tokens, {greedy_tokens} asked for")
        self.positions = None
        if with_positions:
            self.positions = answer["positions"]
            require(len(self.positions) == len(self.tokens), "positions has not one entry a token")
            nlls = [nll for _, nll in self.positions]
            require(nlls.pop() is None, "the last of positions has a likelihood")
            require(np.isfinite(np.array(nlls, dtype=np.float64)).all(), "positions has likelihoods that are missing")


class Wrong(Exception):
    """A rule that does not hold; its text says which and by how much."""


def require(holds, message):
    if not holds:
        raise Wrong(message)


def score(arguments, prompt, vocabulary, greedy_tokens, with_positions):
    command = [arguments.tenon, "score", arguments.model, "-f", str(prompt), "--top", str(vocabulary),
               "--greedy", str(greedy_tokens), "--precision", arguments.precision, "--json",
               *(["--positions"] if with_positions else []), *arguments.options]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    require(done.returncode == 0, f"exit code {done.returncode} from {' '.join(command)}\n"
                                  f"{done.stderr.decode(errors='replace')}")
    try:
        return Score(done.stdout, vocabulary, greedy_tokens, with_positions)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        start = done.stdout[:200].decode(errors="replace")
        raise Wrong(f"malformed answer, {type(error).__name__}: {error}; it begins {start!r}") from None


def nmse(values, reference):
    return float(np.sum((values - reference) ** 2) / np.sum(reference ** 2))


def check_tokens(got, reference):
    same = next((i for i, (a, b) in enumerate(zip(got, reference)) if a != b), min(len(got), len(reference)))
    require(got == reference, f"{len(got)} tokens, reference {len(reference)}; from token {same} on they are "
                              f"{got[same:same + 5]}..., reference {reference[same:same + 5]}...")


def check_nll(got, reference, limit):
    if reference is None:
        require(got is None, f"mean_nll is {got}, but one token has none")
        return
    require(isinstance(got, (int, float)) and math.isfinite(got), f"mean_nll is {got}")
    error = abs(got - reference) / reference
    require(error <= limit, f"mean_nll {got:.6f}, reference {reference:.6f}: off by {error:.2%}, limit {limit:.2%}")


def check_greedy(got, entry, free_margin):
    """Returns how many tokens could be compared."""
    for step, (token, expected, margin) in enumerate(zip(got, entry["greedy"], entry["greedy_margins"], strict=True)):
        if token != expected:
            require(margin <= free_margin, f"greedy token {step} is {token}, reference {expected} by {margin:.3f}")
            return step
    return len(got)


def check_positions(got, reference, precision):
    """Returns how many of the positions' choices had to be the reference's."""
    decided = 0
    for index, ((token, nll), (expected, margin, expected_nll)) in enumerate(zip(got, reference, strict=True)):
        if margin > FREE_MARGIN[precision]:
            decided += 1
            require(token == expected,
                    f"after token {index} the first choice is {token}, reference {expected} by {margin:.3f}")
        if expected_nll is not None and precision == "exact":
            require(abs(nll - expected_nll) <= POSITION_NLL_LIMIT,
                    f"the token after {index} has NLL {nll:.4f}, reference {expected_nll:.4f}")
    return decided


def check_prompt(arguments, name, entry, reference_logits):
    """Raises Wrong, or returns a line about what was found."""
    prompt = pathlib.Path(arguments.reference) / "prompts" / f"{name}.txt"
    require(sha256_of(prompt) == entry["sha256"], f"{prompt} is not the prompt that the reference was made of")
    precision, free_margin = arguments.precision, FREE_MARGIN[arguments.precision]
    positions = entry.get("positions")
    got = score(arguments, prompt, len(reference_logits), len(entry["greedy"]), positions is not None)
    check_tokens(got.tokens, entry["tokens"])
    error = nmse(got.logits, reference_logits.astype(np.float64))
    if precision == "exact":
        require(error <= NMSE_LIMIT, f"logits have NMSE {error:.2e}, limit {NMSE_LIMIT:.0e}")
    if entry["greedy_margins"][0] > free_margin:
        require(got.first == entry["greedy"][0],
                f"first choice {got.first}, reference {entry['greedy'][0]} by {entry['greedy_margins'][0]:.3f}")
    found = f"{len(got.tokens)} tokens, NMSE {error:.1e}, " \
            f"{check_greedy(got.greedy, entry, free_margin)} of {len(got.greedy)} greedy tokens compared"
    if positions is not None:
        require(len(got.tokens) >= LEAST_TOKENS, f"{len(got.tokens)} tokens are too few, {LEAST_TOKENS} needed")
        check_nll(float(np.mean([nll for _, nll in got.positions[:-1]])), entry["mean_nll"], NLL_LIMIT[precision])
        found += f", {check_positions(got.positions, positions, precision)} positions decided"
    if positions is not None or precision == "exact":
        check_nll(got.mean_nll, entry["mean_nll"], NLL_LIMIT[precision])
    elif entry["mean_nll"] is None:
        check_nll(got.mean_nll, None, 0)
    return found


def sha256_of(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def parse(argv):
    own, options = (argv[:argv.index("--")], argv[argv.index("--") + 1:]) if "--" in argv else (argv, [])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon", help="the program")
    parser.add_argument("model", help="the GGUF file that the reference was made of")
    parser.add_argument("reference", help="the folder of the reference: tests/reference")
    parser.add_argument("--precision", choices=["exact", "fast"], required=True)
    parser.add_argument("--prompt", action="append", metavar="NAME", help="only this prompt; may be given again")
    arguments = parser.parse_args(own)
    arguments.options = options
    return arguments


def main(argv):
    arguments = parse(argv)
    reference = json.loads((pathlib.Path(arguments.reference) / "smollm2.json").read_text(encoding="utf-8"))
    if sha256_of(arguments.model) != reference["model_sha256"]:
        sys.exit(f"reference_test: the reference was made of another file than {arguments.model}")
    names = arguments.prompt or sorted(reference["prompts"])
    if unknown := [name for name in names if name not in reference["prompts"]]:
        sys.exit(f"reference_test: no reference for the prompts {', '.join(unknown)}")
    failures = 0
    with np.load(pathlib.Path(arguments.reference) / "smollm2_logits.npz") as logits:
        for name in names:
            try:
                found = check_prompt(arguments, name, reference["prompts"][name], logits[name])
                print(f"ok    {name}: {found}", flush=True)
            except Wrong as wrong:
                failures += 1
                print(f"WRONG {name}: {wrong}", flush=True)
    print(f"{arguments.precision}: {len(names) - failures} of {len(names)} prompts agree with the reference")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""A model split over unlike devices gives the tokens that one device gives.

The mock's memory is out of the host's reach, its streams run on threads of their own with random delays, and it knows
primitives only, so that norms, rope and attention run there as their decompositions.

    split_test.py TENON MODEL
"""

import json
import subprocess
import sys

PROMPT = "The three primary colours are"
# Several buckets, so that more than one piece is in flight where there are slots.
LONG_PROMPT = " ".join(f"{n} times {n} makes {n * n};" for n in range(1, 33)) + " and 33 times 33 makes"
TOKENS = 12
LIMIT_LOGIT = 2e-4  # exact arithmetic on both sides; only the order of sums differs

# name, --device, pins; each mock seed gives other delays
CASES = [
    ("odd layers", "mock:0:delay_us=50:seed=1,cpu:isa=reference", [r"blk\.\d*[13579]\.=mock:0", ".=cpu"]),
    ("two mocks and the CPU", "mock:0:delay_us=50:seed=2,mock:1:delay_us=50:seed=3,cpu:isa=reference",
     [r"blk\.[0-4]\.=mock:1", r"blk\.(5|6|7|20)\.=mock:0", ".=cpu"]),
    ("fused groups", "mock:0:fuse=1,cpu:isa=reference", [r"blk\.1\d\.=mock:0", ".=cpu"]),
    ("products only", "mock:0:ops=linear,cpu:isa=reference", []),
    ("all but the head", "mock:0:delay_us=5:composites=1,cpu:isa=reference", [r"^output=cpu"]),
]


def score(tenon, model, device, pins, prompt=PROMPT, slots=1):
    command = [tenon, "score", model, "-p", prompt, "--greedy", str(TOKENS), "--top", "50", "--precision", "exact",
               "--ctx", "512", "--device", device, "--slots", str(slots), "--json"]
    for pin in pins:
        command += ["--pin", pin]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise SystemExit(f"{device}: exit code {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def generate(tenon, model, device, pins, slots):
    """What `run` says, whose prompt goes in pieces."""
    command = [tenon, "run", model, "--raw", "-p", LONG_PROMPT, "--temp", "0", "-n", str(TOKENS), "--precision",
               "exact", "--ctx", "512", "--device", device, "--slots", str(slots)]
    for pin in pins:
        command += ["--pin", pin]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise SystemExit(f"{device}: exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def main():
    tenon, model = sys.argv[1:3]
    alone = score(tenon, model, "cpu:isa=reference", [])
    failures = 0
    for name, device, pins in CASES:
        split = score(tenon, model, device, pins)
        same = split["greedy"] == alone["greedy"] and split["tokens"] == alone["tokens"]
        logits = dict(alone["top"])
        worst = max(abs(logits.get(token, float("inf")) - logit) for token, logit in split["top"][:40])
        good = same and worst <= LIMIT_LOGIT
        failures += not good
        print(f"{'ok  ' if good else 'FAIL'}  {name}: tokens {'the same' if same else split['greedy']}, "
              f"worst difference of 40 logits {worst:.1e}")

    said = generate(tenon, model, "cpu:isa=reference", [], 1)
    assert len(said.split()) > 2, said
    for name, device, pins in CASES[:2]:
        for slots in (1, 4):
            same = generate(tenon, model, device, pins, slots) == said
            failures += not same
            print(f"{'ok  ' if same else 'FAIL'}  {name}, {slots} slots: {'the same text' if same else 'another text'}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

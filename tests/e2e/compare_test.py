#!/usr/bin/env python3
"""tenon compare finds the very op that a device gets wrong, and nothing where nothing is.

    compare_test.py TENON MODEL
"""

import json
import sys

from program import check, run

REFERENCE = "cpu:isa=reference"


def compare(tenon, model, *args, code=0, against=REFERENCE):
    return run(tenon, "compare", model, "--against", against, *args, code=code)


def main():
    tenon, model = sys.argv[1:3]
    same = json.loads(compare(tenon, model, "--device", REFERENCE, "--json", "-p", "One, two,"))
    check(all(n["nmse"] == 0 and n["within"] for n in same["nodes"]), "a device equals itself")
    check(same["logits"]["nmse"] == 0 and same["logits"]["likeliest"] == same["logits"]["expected_likeliest"],
          "and so do the logits")
    check(len(same["run_tokens"]) >= 2 and same["run_tokens"][-1] == 1, "a text, and one token more")
    runs = {n["run"] for n in same["nodes"]}
    check(runs == set(range(len(same["run_tokens"]))), "nodes of each run")

    text = compare(tenon, model, "--device", "cpu")
    check("every node is within its limit" in text, "the CPU's fast kernels are within every op's limit")
    listed = compare(tenon, model, "--device", "cpu", "--all", "-p", "One, two,")
    check(sum(line.startswith("rms_norm ") for line in listed.splitlines()) > 60, "--all shows every node")

    wrong = ["--device", "mock:1:wrong=silu,cpu", "--pin", "blk\\.7\\.ffn=mock:1", "--pin", ".*=cpu", "-p", "One"]
    text = compare(tenon, model, *wrong, code=1)
    found = json.loads(compare(tenon, model, *wrong, "--json", code=1))
    bad = [n for n in found["nodes"] if not n["within"]]
    check({n["name"] for n in bad} == {"blk.7.ffn_swiglu"} and len(bad) == len(found["run_tokens"]),
          "a wrong op on another device: this node alone, in each run")
    check("first in node 'blk.7.ffn_swiglu' (swiglu" in text, "and the text names it")
    check(bad[0]["worst"]["got"] != bad[0]["worst"]["expected"], "with its worst element")
    check(found["logits"]["nmse"] > same["logits"]["nmse"], "the logits show it too")

    check("--against" in compare(tenon, model, "--device", "cpu", against="", code=2), "no reference")
    check("nowhere" in compare(tenon, model, "--device", "cpu", against="nowhere", code=1), "no such reference")
    check("empty" in compare(tenon, model, "--device", "cpu", "-p", "", code=1), "no text")
    check("context" in compare(tenon, model, "--device", "cpu", "--ctx", "3", code=1), "a context that is too short")
    return 0


if __name__ == "__main__":
    sys.exit(main())

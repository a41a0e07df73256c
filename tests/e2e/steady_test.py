#!/usr/bin/env python3
"""Generating is steady: after the first token nothing is prepared and nothing is allocated.

    steady_test.py TENON MODEL MALLOC_COUNT [-- TENON OPTIONS]

MALLOC_COUNT is the library made of tests/support/malloc_count.c. Two runs that differ only in the number of tokens must
ask the allocator and the kernel for memory equally often, all of the process counted; and the program's own counters must
say the same. Not for sanitizer builds, which bring an allocator of their own.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SHORT, LONG = 64, 256
PROMPT = "The quick brown fox jumps over the lazy dog. A longer prompt takes more than one bucket of tokens to read. " * 3
CASES = {
    "greedy": ["--temp", "0"],
    "sampled": ["--temp", "1.2", "--top-k", "0", "--top-p", "0.99", "--repeat-penalty", "1.1", "--seed", "7"],
    "with stop strings": ["--temp", "0.8", "--seed", "3", "--stop", "a text that never comes", "--stop", "\x01"],
}


def run(arguments, options, tokens):
    """Returns (allocations of the process, the program's statistics)."""
    with tempfile.TemporaryDirectory() as folder:
        counted = pathlib.Path(folder) / "count"
        environment = {**os.environ, "LD_PRELOAD": str(pathlib.Path(arguments.shim).resolve()),
                       "MALLOC_COUNT_FILE": str(counted)}
        command = [arguments.tenon, "run", arguments.model, "--raw", "-p", PROMPT, "-n", str(tokens), "--ignore-eos",
                   "--quiet", "--stats", *options, *arguments.options]
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode != 0:
            sys.exit(f"steady_test: exit code {done.returncode} from {' '.join(command)}\n{done.stderr.decode()}")
        return int(counted.read_text(encoding="ascii")), json.loads(done.stderr.decode().splitlines()[-1])


def check(arguments, options):
    """Returns what is wrong, as messages."""
    (few, short), (many, long) = run(arguments, options, SHORT), run(arguments, options, LONG)
    wrong = []
    for stats, tokens in ((short, SHORT), (long, LONG)):
        if stats["generated_tokens"] != tokens:
            wrong.append(f"{stats['generated_tokens']} tokens generated, {tokens} asked for")
        wrong += [f"-n {tokens}: {count} {what} after the first token"
                  for what, count in stats["after_first_token"].items() if count != 0]
    if few == 0:
        wrong.append(f"{arguments.shim} counted nothing: it isn't at work")
    if few != many:
        wrong.append(f"{few} allocations for {SHORT} tokens, {many} for {LONG}: {(many - few) / (LONG - SHORT):.2f} a token")
    print(f"{few} allocations for {SHORT} tokens, {many} for {LONG}", flush=True)
    return wrong


def main(argv):
    own, options = (argv[:argv.index("--")], argv[argv.index("--") + 1:]) if "--" in argv else (argv, [])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon", help="the program")
    parser.add_argument("model", help="a GGUF file")
    parser.add_argument("shim", help="the library that counts")
    arguments = parser.parse_args(own)
    arguments.options = options
    failures = 0
    for name, case in CASES.items():
        wrong = check(arguments, case)
        failures += bool(wrong)
        print("\n".join(f"WRONG {name}: {message}" for message in wrong) or f"ok    {name}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Generation against what the machine's memory can deliver, interleaved in one run.

Each round measures the read bandwidth (best of several stream patterns, over as many bytes as a token reads) and then
generates text; the ratio is the bytes of weights read per second over that bandwidth. Results are checked elsewhere
(reference_fast): this only times. With --floor it exits with 1 if the median ratio is below F.

    decode.py BENCH_KERNELS TENON MODEL [--rounds N] [--tokens N] [--floor F] [-- OPTION OF tenon run ...]
"""

import argparse
import json
import statistics
import subprocess
import sys


def read_bandwidth(bench):
    """Bytes per second, the best pattern."""
    done = subprocess.run([bench, "--benchmark_filter=^read_memory", "--benchmark_format=json"], capture_output=True,
                          text=True, check=True)
    return max(row["bytes_per_second"] for row in json.loads(done.stdout)["benchmarks"])


def generate(tenon, model, tokens, options):
    command = [tenon, "run", model, "-p", "Tell me a story.", "-n", str(tokens), "--temp", "0", "--ignore-eos", "--stats",
               "--quiet", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(next(line for line in done.stderr.splitlines() if line.startswith("{")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("tenon")
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--floor", type=float, metavar="F", help="the least median ratio, such as 0.3")
    parser.add_argument("options", nargs="*")
    args = parser.parse_args()

    ratios = []
    for number in range(args.rounds):
        bandwidth = read_bandwidth(args.bench)
        stats = generate(args.tenon, args.model, args.tokens, args.options)
        rate = stats["generated_tokens_per_s"]
        ratio = rate * stats["weights_read_per_token_bytes"] / bandwidth
        ratios.append(ratio)
        print(f"round {number + 1}: read {bandwidth / 1e9:.1f} GB/s, prompt {stats['prompt_tokens_per_s']:.0f} tokens/s, "
              f"generation {rate:.1f} tokens/s = {ratio:.0%} of the bandwidth")
    median = statistics.median(ratios)
    print(f"median of {args.rounds}: {median:.0%} of the read bandwidth")
    if args.floor is not None and median < args.floor:
        print(f"decode.py: {median:.1%} is below the floor of {args.floor:.1%}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

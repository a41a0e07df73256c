#!/usr/bin/env python3
"""Writes decode_table.inc: blocks of each type with the values that the PyPI package gguf decodes them to.

An independent witness for the decoders of this folder. Needs gguf and numpy (tests/requirements.txt).
Usage: make_decode_table.py > decode_table.inc
"""
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize

BLOCKS = 3
# name -> elements and bytes of a block, and where its halves are, the scales before the minima.
TYPES = {
    "F16": (1, 2, []),
    "BF16": (1, 2, []),
    "Q4_0": (32, 18, [0]),
    "Q4_1": (32, 20, [0, 2]),
    "Q5_0": (32, 22, [0]),
    "Q5_1": (32, 24, [0, 2]),
    "Q8_0": (32, 34, [0]),
    "Q2_K": (256, 84, [80, 82]),
    "Q3_K": (256, 110, [108]),
    "Q4_K": (256, 144, [0, 2]),
    "Q5_K": (256, 176, [0, 2]),
    "Q6_K": (256, 210, [208]),
}
HALVES = [[0.0123, -0.4], [-1.75, 0.0], [3.1e-5, 12.5]]


def halves(values):
    return np.array(values, dtype="<f2").view(np.uint8)


def raw_blocks(name, rng):
    _, size, places = TYPES[name]
    if name == "F16":
        # usual values, subnormals, zeros of both signs, the largest
        return halves([1.5, -2.25, 6e-8, -5.9e-5, 0.0, -0.0, 65504.0, 0.333]).reshape(1, -1)
    if name == "BF16":
        words = rng.standard_normal(8).astype("<f4").view("<u4") >> 16
        return words.astype("<u2").view(np.uint8).reshape(1, -1)
    blocks = rng.integers(0, 256, (BLOCKS, size), dtype=np.uint8)
    for i in range(BLOCKS):
        for place, half in zip(places, HALVES[i]):
            blocks[i, place:place + 2] = halves([half])
    return blocks.reshape(1, -1)


def main():
    rng = np.random.default_rng(20240601)
    print("// Written by make_decode_table.py; TENON_DECODE(type, bytes, values as bits of f32).")
    for name in TYPES:
        raw = raw_blocks(name, rng)
        values = dequantize(raw, Type[name]).astype("<f4").ravel()
        print(f"TENON_DECODE({name}, TENON_LIST(" + ", ".join(str(b) for b in raw.ravel()) + "),")
        print("             TENON_LIST(" + ", ".join(f"0x{bits:08x}u" for bits in values.view("<u4")) + "))")


if __name__ == "__main__":
    main()

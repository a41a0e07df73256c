#!/usr/bin/env python3
"""Writes decode_table.inc: blocks of each type with the values that the PyPI package gguf decodes them to.

An independent witness for the decoders of this folder. Needs gguf and numpy (tests/requirements.txt).
Usage: make_decode_table.py > decode_table.inc
"""
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize

BLOCKS = 3
TYPES = {"F16": (1, 2), "BF16": (1, 2), "Q4_0": (32, 18), "Q4_1": (32, 20), "Q8_0": (32, 34)}


def halves(values):
    return np.array(values, dtype="<f2").view(np.uint8)


def raw_blocks(name, rng):
    elements, size = TYPES[name]
    if name == "F16":
        # usual values, subnormals, zeros of both signs, the largest
        return halves([1.5, -2.25, 6e-8, -5.9e-5, 0.0, -0.0, 65504.0, 0.333]).reshape(1, -1)
    if name == "BF16":
        words = rng.standard_normal(8).astype("<f4").view("<u4") >> 16
        return words.astype("<u2").view(np.uint8).reshape(1, -1)
    blocks = rng.integers(0, 256, (BLOCKS, size), dtype=np.uint8)
    for i in range(BLOCKS):
        blocks[i, :2] = halves([[0.0123], [-1.75], [3.1e-5]][i])
        if name == "Q4_1":
            blocks[i, 2:4] = halves([[-0.4], [0.0], [12.5]][i])
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

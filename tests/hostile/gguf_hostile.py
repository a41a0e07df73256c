#!/usr/bin/env python3
"""Damaged and odd GGUF files, from outside: `tenon inspect` reads each or refuses it in one line, and never dies of it.

The files come from the PyPI package `gguf`, an implementation independent of Tenon's, and are then cut and changed byte
by byte. What is read without complaint is compared with what that package reads.

Usage: gguf_hostile.py TENON [--model MODEL] [--seed N]
"""

import argparse
import concurrent.futures
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np

TIMEOUT_S = 60
FLIPPED_FILES = 300
MEMORY_LIMIT = 1 << 29  # bytes, for files that claim far more than they hold
SANITIZER = re.compile(rb"Sanitizer|runtime error")

# The types that a reader of today's models has to know; others may be refused, by number.
KNOWN_TYPES = """F32 F16 BF16 F64 I8 I16 I32 I64 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ2_XXS IQ2_XS IQ2_S
IQ3_XXS IQ3_S IQ1_S IQ1_M IQ4_NL IQ4_XS TQ1_0 TQ2_0 MXFP4""".split()


class Case:
    """One file and what is expected of it: a set of exit codes, and words of the message where it is refused."""

    def __init__(self, name, data, codes=(1,), words=(), json_form=False, limited=False):
        self.name, self.data, self.codes, self.words = name, data, codes, words
        self.json_form, self.limited = json_form, limited


def inspect(tenon, path, json_form=False, limited=False):
    command = [tenon, "inspect", str(path)] + (["--json"] if json_form else [])
    if limited:
        # Through the shell, since code between fork and exec isn't safe with the threads of run_cases.
        command = ["sh", "-c", f'ulimit -v {MEMORY_LIMIT >> 10}; exec "$@"', "sh"] + command
    return subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, stdin=subprocess.DEVNULL)


def complaint(case, path, done):
    """What is wrong with how `tenon inspect` took the case; nothing if all is well."""
    if SANITIZER.search(done.stderr):
        return "sanitizer report:\n" + done.stderr.decode(errors="replace")
    if done.returncode not in case.codes:
        return f"exit code {done.returncode}, expected one of {case.codes}; stderr: {done.stderr!r}"
    if done.returncode == 0:
        if done.stderr:
            return f"success with a message: {done.stderr!r}"
        if case.json_form:
            json.loads(done.stdout)
        return None
    if done.stdout:
        return "output before a failure"
    message = done.stderr.decode()
    if message.count("\n") != 1 or not message.endswith("\n"):
        return f"not one line: {message!r}"
    if str(path) not in message:
        return f"the file isn't named: {message!r}"
    for word in case.words:
        if word not in message:
            return f"'{word}' is missing: {message!r}"
    return None


def run_cases(tenon, folder, cases):
    """Runs all cases side by side; answers the failures as (name, text)."""
    with open(tenon, "rb") as program:
        sanitized = b"__asan_init" in program.read()

    def run(numbered):
        number, case = numbered
        path = folder / f"case{number}.gguf"
        path.write_bytes(case.data)
        try:
            # Address sanitizer reserves terabytes of addresses; it has a limit of its own, set below.
            done = inspect(tenon, path, case.json_form, case.limited and not sanitized)
            return case.name, complaint(case, path, done)
        except (subprocess.TimeoutExpired, UnicodeDecodeError, json.JSONDecodeError) as error:
            return case.name, str(error)
        finally:
            path.unlink()

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [(name, text) for name, text in pool.map(run, enumerate(cases)) if text]


# Files made by the package.


def written(folder, fill, **arguments):
    path = folder / "written.gguf"
    writer = gguf.GGUFWriter(path, "hostile", **arguments)
    fill(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    data = path.read_bytes()
    path.unlink()
    return data


def fill_small(writer):
    writer.add_uint32("small.count", 7)
    writer.add_array("small.words", ["one", "two"])
    writer.add_array("small.numbers", [1, 2, 3])
    writer.add_tensor("first.weight", np.zeros((1, 34), dtype=np.uint8), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    # Whole multiples of the alignment: no padding behind it, so that every truncation takes a byte that is needed.
    writer.add_tensor("second.weight", np.arange(16, dtype=np.float32).reshape(2, 8))


def fill_every_value(writer):
    """Every value type, alone and in arrays, at the ends of its range."""
    kinds = {
        "uint8": (0, 255),
        "int8": (-128, 127),
        "uint16": (0, 65535),
        "int16": (-32768, 32767),
        "uint32": (0, 2**32 - 1),
        "int32": (-(2**31), 2**31 - 1),
        "uint64": (0, 2**64 - 1),
        "int64": (-(2**63), 2**63 - 1),
        "float32": (1e-5, -3.4028234663852886e38),
        "float64": (0.1, -1.7976931348623157e308),
        "bool": (False, True),
        "string": ("", "ein Wört, ein 🙂, \x00 \n"),
    }
    for name, values in kinds.items():
        kind = gguf.GGUFValueType[name.upper()]
        for i, value in enumerate(values):
            writer.add_key_value(f"value.{name}.{i}", value, kind)
        writer.add_key_value(f"array.{name}", list(values) * 3, gguf.GGUFValueType.ARRAY, sub_type=kind)
    writer.add_key_value("array.nested", [[1, 2], [3, 4]], gguf.GGUFValueType.ARRAY)
    for rank in range(1, 5):
        writer.add_tensor(f"rank{rank}", np.ones(tuple(range(2, 2 + rank)), dtype=np.float32))


def fill_type(kind):
    def fill(writer):
        block_bytes = gguf.GGML_QUANT_SIZES[kind][1]
        writer.add_tensor("typed", np.zeros((3, 2 * block_bytes), dtype=np.uint8), raw_dtype=kind)

    return fill


# Files made byte by byte.


def text(value):
    value = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(value)) + value


def tensor(name, dimensions, kind, offset):
    return text(name) + struct.pack(f"<I{len(dimensions)}QIQ", len(dimensions), *dimensions, kind, offset)


def by_hand(tensors=(), entries=(), data=0, version=3):
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(entries)) + b"".join(entries) + b"".join(tensors)
    return out + bytes(-len(out) % 32 + data)


def truncations(data):
    return [Case(f"cut to {size} bytes", data[:size], words=() if size else ("empty",)) for size in range(len(data))]


def heads(data):
    """Magic, version and the two counts of an otherwise good file."""
    cases = [
        Case("magic", b"GGUX" + data[4:], words=("not a GGUF file", "GGUX")),
        Case("zeros", bytes(4096), words=("not a GGUF file",)),
        Case("text", b"no model\n" * 99, words=("not a GGUF file",)),
        Case("LFS pointer", b"version https://git-lfs.github.com/spec/v1\n", words=("git lfs pull",)),
    ]
    for version, word in (
        (0, "version 0"),
        (1, "version 1"),
        (4, "version 4"),
        (3 << 24, "big-endian"),
        (2**32 - 1, "version"),
    ):
        cases.append(Case(f"version {version}", data[:4] + struct.pack("<I", version) + data[8:], words=(word,)))
    for count in (10**4, 2**31, 2**32 - 1, 2**32, 2**61, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1):
        packed = struct.pack("<Q", count)
        cases.append(Case(f"{count} tensors", data[:8] + packed + data[16:], words=(str(count),), limited=True))
        cases.append(Case(f"{count} entries", data[:16] + packed + data[24:], words=(str(count),), limited=True))
    return cases


def lengths():
    """Lengths of strings and arrays that the file can't hold."""
    cases = []
    for count in (10**4, 2**32, 2**61, 2**61 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1):
        packed = struct.pack("<Q", count)
        cases.append(Case(f"key of {count} bytes", by_hand(entries=[packed], data=64), words=("key",), limited=True))
        cases.append(
            Case(
                f"string of {count} bytes",
                by_hand(entries=[text("k") + struct.pack("<I", 8) + packed], data=64),
                words=("'k'",),
                limited=True,
            )
        )
        cases.append(
            Case(f"name of {count} bytes", by_hand(tensors=[packed], data=64), words=("tensor",), limited=True)
        )
        for kind in range(13):
            entry = text("k") + struct.pack("<II", 9, kind) + packed
            cases.append(
                Case(f"array of {count} x type {kind}", by_hand(entries=[entry], data=64), words=("'k'",), limited=True)
            )
    return cases


def metadata():
    def entry(key, kind, value):
        return text(key) + struct.pack("<I", kind) + value

    good = entry("k", 0, b"\x01")
    nested = struct.pack("<IQ", 9, 1) * 5000
    return [
        Case("duplicate key", by_hand(entries=[good, good]), words=("'k'", "more than once")),
        Case("empty key", by_hand(entries=[entry("", 0, b"\x01")], data=64), words=("empty",)),
        Case("long key", by_hand(entries=[entry("k" * 65536, 0, b"\x01")]), words=("65536",)),
        Case("type 13", by_hand(entries=[entry("k", 13, bytes(8))], data=64), words=("'k'", "13")),
        Case("type 2^32-1", by_hand(entries=[entry("k", 2**32 - 1, bytes(8))], data=64), words=("'k'", str(2**32 - 1))),
        Case("bool 2", by_hand(entries=[entry("k", 7, b"\x02")]), words=("'k'", "bool")),
        Case("deep nesting", by_hand(entries=[entry("k", 9, nested)], data=64), words=("'k'", "nested")),
        Case("alignment 0", by_hand(entries=[entry("general.alignment", 4, bytes(4))]), words=("power of two",)),
        Case("alignment 33", by_hand(entries=[entry("general.alignment", 4, b"\x21\0\0\0")]), words=("power of two",)),
        Case(
            "alignment a string",
            by_hand(entries=[entry("general.alignment", 8, text("32"))]),
            words=("general.alignment",),
        ),
        Case(
            "alignment 2^63",
            by_hand([tensor("t", [1], 0, 0)], [entry("general.alignment", 10, struct.pack("<Q", 2**63))]),
            words=("past the end",),
        ),
        Case(
            "control characters",
            by_hand(entries=[entry("a\n\x1b[31m\xff", 99, b"")], data=64),
            words=("a\\n\\x1b[31m",),
        ),
        Case(
            "values that aren't UTF-8",
            by_hand(entries=[entry(b"\xff", 8, text(b"\xc0\x80")), entry("nan", 6, struct.pack("<f", float("nan")))]),
            codes=(0,),
            json_form=True,
        ),
        Case("nothing at all", by_hand(), codes=(0,), json_form=True),
    ]


def tensors():
    cases = [
        Case(
            "duplicate tensor",
            by_hand([tensor("t", [8], 0, 0), tensor("t", [8], 0, 32)], data=64),
            words=("'t'", "more than once"),
        ),
        Case(
            "same bytes",
            by_hand([tensor("t", [8], 0, 0), tensor("u", [8], 0, 0)], data=64),
            words=("'t'", "'u'", "overlap"),
        ),
        Case(
            "overlap",
            by_hand([tensor("t", [8], 0, 32), tensor("u", [9], 0, 0)], data=64),
            words=("'t'", "'u'", "overlap"),
        ),
        Case("no name", by_hand([tensor("", [8], 0, 0)], data=64), words=("empty",)),
        Case("9 dimensions", by_hand([tensor("t", [1] * 9, 0, 0)], data=64), words=("'t'", "9")),
        Case("2^32-1 dimensions", by_hand([text("t") + b"\xff" * 4], data=64), words=("'t'", "dimensions")),
        Case("dimension 0", by_hand([tensor("t", [8, 0], 0, 0)], data=64), words=("'t'", "dimension 1")),
        Case("part of a block", by_hand([tensor("t", [33], 8, 0)], data=64), words=("'t'", "block")),
        Case("unaligned", by_hand([tensor("t", [8], 0, 8)], data=64), words=("'t'", "alignment")),
        Case("one byte short", by_hand([tensor("t", [8], 0, 32)], data=63), words=("'t'", "past the end")),
        Case("just enough", by_hand([tensor("t", [8], 0, 32)], data=64), codes=(0,)),
    ]
    for offset in (64, 96, 2**32, 2**63 - 32, 2**63, 2**64 - 32):
        cases.append(
            Case(f"offset {offset}", by_hand([tensor("t", [8], 0, offset)], data=64), words=("'t'", "past the end"))
        )
    for size in (2**31, 2**61, 2**62, 2**63 - 1):
        for shape in ([size], [1, size], [size, size], [size, 4, size, 8]):
            cases.append(Case(f"shape {shape}", by_hand([tensor("t", shape, 0, 0)], data=64), words=("'t'",)))
    for size in (2**63, 2**64 - 1):
        cases.append(Case(f"size {size}", by_hand([tensor("t", [size], 0, 0)], data=64), words=("'t'", "dimension 0")))
    for kind in (4, 5, 42, 99, 0x10000, 2**31, 2**32 - 1):
        cases.append(Case(f"type {kind}", by_hand([tensor("t", [256], kind, 0)], data=4096), words=("'t'", str(kind))))
    return cases


def flips(data, seed):
    """Single bytes of the header at each place, then several anywhere, changed at random."""
    source, cases = random.Random(seed), []
    for i in range(FLIPPED_FILES):
        changed = bytearray(data)
        places = [i % len(data)] if i % 2 else source.sample(range(len(data)), source.randint(1, 6))
        for place in places:
            changed[place] = source.choice((0, 1, 0x7F, 0x80, 0xFF, changed[place] ^ (1 << source.randrange(8))))
        cases.append(Case(f"flip {i} at {places}", bytes(changed), codes=(0, 1), json_form=i % 4 < 2))
    return cases


# The package as a witness.


def differences(path, shown):
    """Where the object that `tenon inspect --json` printed differs from what the package reads."""
    reader = gguf.GGUFReader(path)
    fields = {name: field for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    wrong = []
    if list(shown["metadata"]) != list(fields):
        wrong.append("keys or their order")
    for name, field in fields.items():
        entry, kind = shown["metadata"].get(name, {}), field.types[0]
        value = entry.get("value")
        if kind == gguf.GGUFValueType.ARRAY and field.types[1] == gguf.GGUFValueType.ARRAY:
            value = [inner for outer in value for inner in outer]  # the package flattens
        if kind == gguf.GGUFValueType.ARRAY and entry.get("element_type") != field.types[1].name.lower():
            wrong.append(f"{name}: element type {entry.get('element_type')}, not {field.types[1].name}")
        if entry.get("type") != kind.name.lower() or value != field.contents():
            wrong.append(f"{name}: {kind.name} {str(value)[:80]}, not {str(field.contents())[:80]}")
    theirs = [
        (t.name, t.tensor_type.name.lower(), [int(n) for n in reversed(t.shape)], int(t.n_bytes), int(t.data_offset))
        for t in reader.tensors
    ]
    ours = [(t["name"], t["type"], t["shape"], t["bytes"], t["offset"]) for t in shown["tensors"]]
    if ours != theirs:
        wrong += [f"tensor {a} is not {b}" for a, b in zip(ours, theirs) if a != b] or ["number of tensors"]
    totals = (
        len(reader.tensors),
        sum(int(t.n_elements) for t in reader.tensors),
        sum(int(t.n_bytes) for t in reader.tensors),
    )
    if tuple(shown["totals"][key] for key in ("tensors", "elements", "bytes")) != totals:
        wrong.append(f"totals {shown['totals']}, not {totals}")
    if shown["file_bytes"] != os.path.getsize(path):
        wrong.append("file size")
    return wrong


def witness(tenon, path, name):
    done = inspect(tenon, path, json_form=True)
    if done.returncode != 0 or done.stderr:
        return [(name, f"exit code {done.returncode}: {done.stderr!r}")]
    return [(name, text) for text in differences(path, json.loads(done.stdout))]


def witness_types(tenon, folder):
    """Every tensor type of the package: read alike, or refused by number if it isn't one that must be known."""
    failures, path = [], folder / "type.gguf"
    for kind in gguf.GGML_QUANT_SIZES:
        path.write_bytes(written(folder, fill_type(kind)))
        if kind.name in KNOWN_TYPES:
            failures += witness(tenon, path, f"type {kind.name}")
            continue
        done = inspect(tenon, path)
        if done.returncode != 0:
            case = Case("", b"", words=("'typed'", f"tensor type {int(kind)}"))
            failures += [(f"type {kind.name}", text) for text in [complaint(case, path, done)] if text]
    return failures


def not_files(tenon, folder):
    """Paths that are no regular file, or none at all."""
    (folder / "directory").mkdir()
    os.mkfifo(folder / "fifo")
    failures = []
    for path, word in (
        (folder / "directory", "directory"),
        (folder / "fifo", "pipe"),
        (Path("/dev/zero"), "device"),
        (folder / "none.gguf", "No such file"),
        (folder / "directory/x/y.gguf", "No such file"),
    ):
        failures += [
            (str(path), text) for text in [complaint(Case("", b"", words=(word,)), path, inspect(tenon, path))] if text
        ]
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tenon")
    parser.add_argument("--model", help="a real model, to be read as the package reads it")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    os.environ["ASAN_OPTIONS"] = f"max_allocation_size_mb={MEMORY_LIMIT >> 20}:" + os.environ.get("ASAN_OPTIONS", "")

    with tempfile.TemporaryDirectory(prefix="tenon-hostile-") as name:
        folder = Path(name)
        small = written(folder, fill_small)
        big_endian = written(folder, fill_small, endianess=gguf.GGUFEndian.BIG)
        cases = [Case("unharmed", small, codes=(0,)), Case("big-endian", big_endian, words=("big-endian",))]
        cases += truncations(small) + heads(small) + lengths() + metadata() + tensors() + flips(small, arguments.seed)
        failures = run_cases(arguments.tenon, folder, cases)
        failures += not_files(arguments.tenon, folder)
        every = folder / "every.gguf"
        every.write_bytes(written(folder, fill_every_value))
        failures += witness(arguments.tenon, every, "every value type")
        failures += witness_types(arguments.tenon, folder)
        if arguments.model:
            failures += witness(arguments.tenon, arguments.model, "model")
    for name, text in failures[:20]:
        print(f"FAILED {name}: {text}")
    print(f"{len(cases)} damaged or odd files, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

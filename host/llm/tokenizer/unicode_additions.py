#!/usr/bin/env python3
"""Writes unicode_additions.h: the code points that the PyPI package `tokenizers` counts as letters, numbers and
punctuation although PCRE2 doesn't, because PCRE2's Unicode tables are older.

Both sides are asked, not their documentation: PCRE2 through its C library, `tokenizers` through its splitting rules,
for every code point. Run it on the oldest PCRE2 that Tenon supports (10.42, Unicode 14): newer ones know some of the
ranges themselves, and naming a character twice in a class does no harm.

    ./unicode_additions.py > unicode_additions.h
"""
import ctypes
import ctypes.util
import sys

import tokenizers
from tokenizers import Regex, pre_tokenizers

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
TEXT = "".join(map(chr, CODE_POINTS))

PCRE2_UTF, PCRE2_UCP = 0x00080000, 0x00020000
PCRE2_CONFIG_UNICODE_VERSION, PCRE2_CONFIG_VERSION = 10, 11


def open_pcre2():
    lib = ctypes.CDLL(ctypes.util.find_library("pcre2-8") or "libpcre2-8.so.0")
    lib.pcre2_compile_8.restype = ctypes.c_void_p
    lib.pcre2_compile_8.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint32, ctypes.c_void_p,
                                    ctypes.c_void_p, ctypes.c_void_p]
    lib.pcre2_match_data_create_8.restype = ctypes.c_void_p
    lib.pcre2_match_8.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_uint32,
                                  ctypes.c_void_p, ctypes.c_void_p]
    lib.pcre2_get_ovector_pointer_8.restype = ctypes.POINTER(ctypes.c_size_t)
    lib.pcre2_get_ovector_pointer_8.argtypes = [ctypes.c_void_p]
    return lib


def pcre2_text(lib, what):
    buffer = ctypes.create_string_buffer(64)
    lib.pcre2_config_8(what, buffer)
    return buffer.value.decode()


def members_in_pcre2(lib, members):
    """The code points that the class [members] matches."""
    pattern, subject = f"[{members}]+".encode(), TEXT.encode()
    error, offset = ctypes.c_int(), ctypes.c_size_t()
    code = lib.pcre2_compile_8(pattern, len(pattern), PCRE2_UTF | PCRE2_UCP, ctypes.byref(error), ctypes.byref(offset),
                               None)
    assert code, f"PCRE2 refuses {pattern}: error {error.value} at {offset.value}"
    data = ctypes.c_void_p(lib.pcre2_match_data_create_8(8, None))
    found, start = set(), 0
    while lib.pcre2_match_8(code, subject, len(subject), start, 0, data, None) >= 0:
        begin, end = lib.pcre2_get_ovector_pointer_8(data)[0:2]
        found.update(map(ord, subject[begin:end].decode()))
        start = end
    return found


def members_in_tokenizers(members):
    kept = set()
    for piece, _ in pre_tokenizers.Split(Regex(f"[{members}]"), "removed").pre_tokenize_str(TEXT):
        kept.update(map(ord, piece))
    return set(CODE_POINTS) - kept


def digits_in_tokenizers():
    """What the `Digits` rule sets apart: its tables are not those of the regular expressions."""
    text = "".join(f"a{chr(c)}" for c in CODE_POINTS)
    pieces = pre_tokenizers.Digits(individual_digits=True).pre_tokenize_str(text)
    return {ord(piece) for piece, _ in pieces if len(piece) == 1 and piece != "a"}


def ranges(points):
    out = []
    for point in sorted(points):
        if out and out[-1][1] == point - 1:
            out[-1][1] = point
        else:
            out.append([point, point])
    return out


def definition(name, comment, points):
    lines, line = [], ""
    for first, last in ranges(points):
        item = f"\\\\x{{{first:x}}}" + (f"-\\\\x{{{last:x}}}" if last > first else "")
        if len(line) + len(item) > 100:
            lines.append(line)
            line = ""
        line += item
    lines.append(line)
    body = "\n".join(f'    "{line}"' for line in lines)
    return f"/// {comment}: {len(points)} code points in {len(ranges(points))} ranges.\n#define {name} \\\n" + \
        body.replace("\n", " \\\n") + "\n"


def main():
    lib = open_pcre2()
    missing = {}
    for members in (r"\p{L}", r"\p{N}", r"\p{P}"):
        here, there = members_in_pcre2(lib, members), members_in_tokenizers(members)
        assert not here - there, f"PCRE2 counts more as {members}: {[hex(c) for c in sorted(here - there)]}"
        missing[members] = there - here
    spaces = members_in_pcre2(lib, r"\t-\r\x{85}\p{Z}") ^ members_in_tokenizers(r"\s")
    assert not spaces, f"white space differs: {[hex(c) for c in sorted(spaces)]}"
    digits = digits_in_tokenizers() - members_in_tokenizers(r"\p{N}")

    sys.stdout.write(f"""\
// Made by unicode_additions.py from PCRE2 {pcre2_text(lib, PCRE2_CONFIG_VERSION).split()[0]} \
(Unicode {pcre2_text(lib, PCRE2_CONFIG_UNICODE_VERSION)}) and tokenizers {tokenizers.__version__}; don't edit.
// Ranges for the inside of a PCRE2 character class. Macros, because they are joined with other literals.
#pragma once

// clang-format off

""")
    sys.stdout.write("\n".join([
        definition("TENON_MORE_LETTERS", r"Letters (\p{L}) that PCRE2 doesn't know",
                   missing[r"\p{L}"]),
        definition("TENON_MORE_NUMBERS", r"Numbers (\p{N}) that PCRE2 doesn't know", missing[r"\p{N}"]),
        definition("TENON_MORE_PUNCTUATION", r"Punctuation (\p{P}) that PCRE2 doesn't know", missing[r"\p{P}"]),
        definition("TENON_MORE_DIGITS", "Numbers that only the rule for single digits knows", digits),
    ]))


if __name__ == "__main__":
    main()

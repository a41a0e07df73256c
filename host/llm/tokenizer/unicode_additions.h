// Made by unicode_additions.py from PCRE2 10.42 (Unicode 14.0.0) and tokenizers 0.23.3; don't edit.
// Ranges for the inside of a PCRE2 character class. Macros, because they are joined with other literals.
#pragma once

// clang-format off

/// Letters (\p{L}) that PCRE2 doesn't know: 9272 code points in 35 ranges.
#define TENON_MORE_LETTERS \
    "\\x{1c89}-\\x{1c8a}\\x{a7cb}-\\x{a7cd}\\x{a7da}-\\x{a7dc}\\x{105c0}-\\x{105f3}\\x{10d4a}-\\x{10d65}" \
    "\\x{10d6f}-\\x{10d85}\\x{10ec2}-\\x{10ec4}\\x{1123f}-\\x{11240}\\x{11380}-\\x{11389}\\x{1138b}" \
    "\\x{1138e}\\x{11390}-\\x{113b5}\\x{113b7}\\x{113d1}\\x{113d3}\\x{11bc0}-\\x{11be0}\\x{11f02}" \
    "\\x{11f04}-\\x{11f10}\\x{11f12}-\\x{11f33}\\x{1342f}\\x{13441}-\\x{13446}\\x{13460}-\\x{143fa}" \
    "\\x{16100}-\\x{1611d}\\x{16d40}-\\x{16d6c}\\x{18cff}\\x{1b132}\\x{1b155}\\x{1df25}-\\x{1df2a}" \
    "\\x{1e030}-\\x{1e06d}\\x{1e4d0}-\\x{1e4eb}\\x{1e5d0}-\\x{1e5ed}\\x{1e5f0}\\x{2b739}" \
    "\\x{2ebf0}-\\x{2ee5d}\\x{31350}-\\x{323af}"

/// Numbers (\p{N}) that PCRE2 doesn't know: 120 code points in 10 ranges.
#define TENON_MORE_NUMBERS \
    "\\x{10d40}-\\x{10d49}\\x{116d0}-\\x{116e3}\\x{11bf0}-\\x{11bf9}\\x{11f50}-\\x{11f59}" \
    "\\x{16130}-\\x{16139}\\x{16d70}-\\x{16d79}\\x{1ccf0}-\\x{1ccf9}\\x{1d2c0}-\\x{1d2d3}" \
    "\\x{1e4f0}-\\x{1e4f9}\\x{1e5f1}-\\x{1e5fa}"

/// Punctuation (\p{P}) that PCRE2 doesn't know: 36 code points in 10 ranges.
#define TENON_MORE_PUNCTUATION \
    "\\x{1b4e}-\\x{1b4f}\\x{1b7f}\\x{10d6e}\\x{113d4}-\\x{113d5}\\x{113d7}-\\x{113d8}" \
    "\\x{11b00}-\\x{11b09}\\x{11be1}\\x{11f43}-\\x{11f4f}\\x{16d6d}-\\x{16d6f}\\x{1e5ff}"

/// Numbers that only the rule for single digits knows: 13 code points in 2 ranges.
#define TENON_MORE_DIGITS \
    "\\x{11de0}-\\x{11de9}\\x{16ff4}-\\x{16ff6}"

#!/usr/bin/env python3
"""Tenon's tokenizer against the PyPI package `tokenizers`, with the same vocabulary and merges.

    against_tokenizers.py TENON MODEL [--texts N] [--seed S]

The model's own file first. Then each splitting rule that Tenon knows, with the model's vocabulary (completed, so that
every text must come back whole and every cut shows in the tokens) in files that name the rule. Not one token may differ.
"""
import argparse
import os
import sys
import tempfile
import time

from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers

from model_files import CONTROL, ask, byte_letters, completed, read_vocabulary, write_tokenizer_file
from texts import make_texts

CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")


def cut(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def letters_only():
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)


def gpt2():
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


# How each rule is put together in the tokenizer.json of the models that it is named after. "default" is no model's: its
# four steps are GGUF's own. ByteLevel with a regular expression comes before further cuts only in them, where it would
# hide the text behind letters; so the expression is written out there.
GPT2_EXPRESSION = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
RULES = {
    "smollm": lambda: [pre_tokenizers.Digits(individual_digits=True), gpt2()],
    "gpt-2": lambda: [gpt2()],
    "llama-bpe": lambda: [cut(CL100K.format(r"\p{N}{1,3}")), letters_only()],
    "qwen2": lambda: [cut(CL100K.format(r"\p{N}")), letters_only()],
    "default": lambda: [cut(r"[\p{P}\$\+<=>\^~\|]+"), cut(GPT2_EXPRESSION), cut(r"\p{N}+"), cut("[0-9][0-9][0-9]"),
                        letters_only()],
}


def reference(vocabulary, rule):
    merges = [tuple(merge.split(" ")) for merge in vocabulary.merges]
    ids = {token: i for i, token in enumerate(vocabulary.tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=merges, ignore_merges=rule == "llama-bpe"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(RULES[rule]())
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False)
                                  for token in special_tokens(vocabulary)])
    return tokenizer


def special_tokens(vocabulary):
    return [token for token, kind in zip(vocabulary.tokens, vocabulary.types) if kind == CONTROL]


def first_difference(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def compare(tenon, file, vocabulary, rule, texts):
    """Compares both directions over all texts; answers the number of texts that differ."""
    expected = [encoding.ids for encoding in reference(vocabulary, rule).encode_batch(texts)]
    answers = ask(tenon, file, texts)
    known = set(vocabulary.tokens)
    lost = {byte for byte, letter in enumerate(byte_letters()) if letter not in known}
    # What a vocabulary without all bytes can express; the rest is left out, here as there. Where that breaks a character,
    # U+FFFD stands for what is left of it.
    kept = [bytes(b for b in text.encode() if b not in lost).decode(errors="replace") for text in texts]
    back = ask(tenon, file, [" ".join(map(str, answer["tokens"])) or " " for answer in answers], "--decode=-")
    failures = 0
    for text, wanted, answer, whole, kept_text in zip(texts, expected, answers, back, kept):
        tokens = answer["tokens"]
        if tokens != wanted:
            at = first_difference(tokens, wanted)
            failures += 1
            if failures <= 5:
                print(f"  {rule}: {text[:80]!r}: token {at}: {tokens[at:at + 6]}, expected {wanted[at:at + 6]}: "
                      f"{[vocabulary.tokens[i] for i in wanted[at:at + 6]]}")
        elif whole["text"] != kept_text:
            failures += 1
            print(f"  {rule}: {text[:80]!r}: comes back as {whole['text'][:80]!r}")
        elif len(answer["pieces"]) != len(tokens):
            failures += 1
            print(f"  {rule}: {text[:80]!r}: {len(answer['pieces'])} pieces for {len(tokens)} tokens")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tenon")
    parser.add_argument("model")
    parser.add_argument("--texts", type=int, default=2400, help="generated texts for each rule")
    parser.add_argument("--seed", type=int, default=20240229)
    options = parser.parse_args()

    own = read_vocabulary(options.model)
    complete = completed(own)
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        cases = [("the model's file", options.model, own, "smollm")]
        for rule in RULES:
            file = os.path.join(folder, f"{rule}.gguf")
            write_tokenizer_file(file, complete, rule)
            cases.append((f"rule {rule}", file, complete, rule))
        for number, (name, file, vocabulary, rule) in enumerate(cases):
            start = time.monotonic()
            texts = make_texts(options.texts, special_tokens(own), options.seed + number)
            failed = compare(options.tenon, file, vocabulary, rule, texts)
            failures += failed
            print(f"{name}: {len(texts)} texts, {sum(map(len, texts))} characters, {failed} differ "
                  f"({time.monotonic() - start:.1f} s)")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

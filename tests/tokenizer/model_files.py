"""What the tokenizer's tests share: reading a model's vocabulary with the PyPI package `gguf`, writing small GGUF files
that hold a tokenizer and nothing else, and asking the `tenon` binary about many texts at once."""
import dataclasses
import json
import subprocess

import gguf

CONTROL = gguf.TokenType.CONTROL


@dataclasses.dataclass
class Vocabulary:
    tokens: list
    types: list
    merges: list
    chat_template: str


def read_vocabulary(path):
    fields = gguf.GGUFReader(path).fields
    read = lambda key: fields[f"tokenizer.{key}"].contents()
    return Vocabulary(read("ggml.tokens"), read("ggml.token_type"), read("ggml.merges"), read("chat_template"))


def byte_letters():
    """The letters by which byte-level vocabularies write the bytes 0 to 255."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


def completed(vocabulary):
    """The vocabulary with tokens for the bytes that it lacks, so that any text can be encoded without loss, and, before
    its own merges, one for every two bytes: whatever stands in one word is then joined, so that the tokens show where
    rare characters are cut, too."""
    known, letters = set(vocabulary.tokens), byte_letters()
    more = [letter for letter in letters if letter not in known]
    pairs = [(a, b) for a in letters for b in letters if a + b not in known]
    tokens = vocabulary.tokens + more + [a + b for a, b in pairs]
    return dataclasses.replace(vocabulary, tokens=tokens, merges=[f"{a} {b}" for a, b in pairs] + vocabulary.merges,
                               types=vocabulary.types + [gguf.TokenType.NORMAL] * (len(more) + len(pairs)))


def write_tokenizer_file(path, vocabulary, pre, chat_template=None, bos=None):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(vocabulary.tokens)
    writer.add_token_types(vocabulary.types)
    writer.add_token_merges(vocabulary.merges)
    writer.add_add_bos_token(False)
    if bos is not None:
        writer.add_bos_token_id(bos)
    if chat_template is not None:
        writer.add_chat_template(chat_template)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def ask(tenon, model, texts, *options):
    """One answer of `tenon tokenize` a text."""
    stdin = b"".join(text.encode() + b"\0" for text in texts)
    done = subprocess.run([tenon, "tokenize", model, "--json", "--batch", *options], input=stdin, capture_output=True)
    if done.returncode != 0:
        raise SystemExit(f"tenon tokenize {' '.join(options)}: exit {done.returncode}: {done.stderr.decode()}")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) != len(texts):
        raise SystemExit(f"tenon tokenize {' '.join(options)}: {len(answers)} answers to {len(texts)} texts")
    return answers

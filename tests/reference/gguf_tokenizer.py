"""A tokenizer built from a GGUF file's own tables with the PyPI package `tokenizers`, an independent implementation.

Byte-level BPE: the text is cut into words by the file's pre-splitting rule, each word's UTF-8 bytes become printable
stand-in characters (the GPT-2 alphabet), and merges are applied by rank within a word. Control tokens in the text are
recognised before any of that. No BOS is added unless the file asks for one.
"""

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

CONTROL = 3  # values of tokenizer.ggml.token_type
USER_DEFINED = 4

# The pre-splitting rules by the name that a GGUF file gives them. A rule comes with the first reference that needs it.
PRE_SPLITTING = {
    "gpt-2": lambda: pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    "smollm": lambda: pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    ]),
}


class GgufTokenizer:
    """Text to token ids and back, as the GGUF file behind `reader` (a gguf.GGUFReader) says."""

    def __init__(self, reader):
        def field(name, default=None):
            return reader.fields[name].contents() if name in reader.fields else default

        if field("tokenizer.ggml.model") != "gpt2":
            raise ValueError(f"not a byte-level BPE tokenizer: {field('tokenizer.ggml.model')!r}")
        rule = field("tokenizer.ggml.pre", "default")
        if rule not in PRE_SPLITTING:
            raise ValueError(f"no pre-splitting rule for tokenizer.ggml.pre = {rule!r}")

        self.pieces = field("tokenizer.ggml.tokens")
        kinds = field("tokenizer.ggml.token_type")
        # In the GPT-2 alphabet a blank is a stand-in character, so the one blank in a merge parts its two halves.
        merges = [tuple(merge.split(" ")) for merge in field("tokenizer.ggml.merges")]
        self._tokenizer = Tokenizer(models.BPE({piece: id for id, piece in enumerate(self.pieces)}, merges))
        self._tokenizer.pre_tokenizer = PRE_SPLITTING[rule]()
        self._tokenizer.decoder = decoders.ByteLevel()
        added = [AddedToken(piece, special=kind == CONTROL, normalized=False)
                 for piece, kind in zip(self.pieces, kinds, strict=True) if kind in (CONTROL, USER_DEFINED)]
        self._tokenizer.add_tokens(added)
        if self._tokenizer.get_vocab_size() != len(self.pieces):
            raise ValueError("the file's vocabulary has pieces that occur twice")
        self._bos = [field("tokenizer.ggml.bos_token_id")] if field("tokenizer.ggml.add_bos_token", False) else []

    def encode(self, text):
        """The ids of `text`, taken raw."""
        return self._bos + self._tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, ids):
        """The text of `ids`; control tokens appear in writing."""
        return self._tokenizer.decode(list(ids), skip_special_tokens=False)

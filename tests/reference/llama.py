"""The forward pass of the llama architecture in NumPy: what Tenon's results are measured against.

Written from the published description of the model (RMS norm, rotary positions, grouped-query attention, SwiGLU) for
reading, not for speed. Nothing here is Tenon's: the weights are decoded by the PyPI package `gguf`. All arithmetic is
in `dtype`, float64 unless asked otherwise.

Shapes: t tokens, p positions in the cache (earlier ones and these t), d the model's width, h heads, g heads of the
cache (each read by h / g query heads), k a head's width, v the vocabulary.
"""

import gguf
import numpy as np


class Llama:
    """A model out of a GGUF file, with every weight decoded into `dtype`."""

    def __init__(self, path, dtype=np.float64):
        self.reader = gguf.GGUFReader(path)
        architecture = self._field("general.architecture")
        if architecture != "llama":
            raise ValueError(f"{path}: the architecture is {architecture!r}, this reference knows 'llama'")
        self.layers = self._field("llama.block_count")
        self.heads = self._field("llama.attention.head_count")
        self.kv_heads = self._field("llama.attention.head_count_kv", self.heads)
        self.norm_epsilon = self._field("llama.attention.layer_norm_rms_epsilon")
        width = self._field("llama.embedding_length")
        self.head_width = self._field("llama.attention.key_length", width // self.heads)
        self.rope_width = self._field("llama.rope.dimension_count", self.head_width)
        self.rope_base = self._field("llama.rope.freq_base", 10000.0)
        scaled = [name for name in self.reader.fields if name.startswith("llama.rope.scal")]
        if scaled or any(tensor.name.startswith("rope_freqs") for tensor in self.reader.tensors):
            raise ValueError(f"{path}: scaled rotary positions are not part of this reference")
        self.dtype = dtype
        # A decoded matrix has its rows as in the file: [out, in], so y = x W^T.
        self.weights = {tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(dtype)
                        for tensor in self.reader.tensors}
        self.embedding = self.weights["token_embd.weight"]  # [v, d]
        self.output = self.weights.get("output.weight", self.embedding)  # tied where the file has none

    def _field(self, name, default=None):
        if name in self.reader.fields:
            return self.reader.fields[name].contents()
        if default is None:
            raise ValueError(f"the file lacks {name}")
        return default

    def hidden(self, ids, cache):
        """Runs `ids` after what `cache` (a KvCache) holds, and adds them to it. Returns [t, d], normed for the output.
        """
        x = self.embedding[np.asarray(ids)]
        positions = np.arange(cache.length, cache.length + len(ids))
        for layer in range(self.layers):
            x = x + self._attention(layer, self._norm(x, f"blk.{layer}.attn_norm"), positions, cache)
            x = x + self._feed_forward(layer, self._norm(x, f"blk.{layer}.ffn_norm"))
        cache.length += len(ids)
        return self._norm(x, "output_norm")

    def logits(self, hidden):
        """[t, d] -> [t, v]"""
        return hidden @ self.output.T

    def _linear(self, x, name):
        return x @ self.weights[f"{name}.weight"].T

    def _norm(self, x, name):
        """x / sqrt(mean(x^2) + epsilon) * w, over the last dimension."""
        mean_square = np.mean(x * x, axis=-1, keepdims=True)
        return x / np.sqrt(mean_square + self.norm_epsilon) * self.weights[f"{name}.weight"]

    def _rope(self, x, positions):
        """Turns pair i of each head of x [t, h, k] by position * base^(-2i / width).

        GGUF keeps the rows of the llama architecture's Q and K in an order that makes a pair two adjacent elements,
        (2i, 2i + 1); the original checkpoints pair i with i + width / 2.
        """
        exponents = np.arange(0, self.rope_width, 2) / self.rope_width
        angles = positions[:, None, None] * self.rope_base ** -exponents.astype(np.float64)  # [t, 1, width / 2]
        cos, sin = np.cos(angles).astype(self.dtype), np.sin(angles).astype(self.dtype)
        even, odd = x[..., 0:self.rope_width:2], x[..., 1:self.rope_width:2]
        turned = x.copy()
        turned[..., 0:self.rope_width:2] = even * cos - odd * sin
        turned[..., 1:self.rope_width:2] = even * sin + odd * cos
        return turned

    def _attention(self, layer, x, positions, cache):
        """softmax(q k^T / sqrt(width)) v, where a token sees its own and earlier positions; then the output matrix."""
        tokens, block = len(x), f"blk.{layer}.attn"
        q = self._linear(x, f"{block}_q").reshape(tokens, self.heads, -1)
        k = self._linear(x, f"{block}_k").reshape(tokens, self.kv_heads, -1)
        v = self._linear(x, f"{block}_v").reshape(tokens, self.kv_heads, -1)
        keys, values = cache.append(layer, self._rope(k, positions), v)  # [p, g, k]
        q = self._rope(q, positions).reshape(tokens, self.kv_heads, self.heads // self.kv_heads, -1)
        # [g, h / g, t, k] x [g, 1, k, p]: query heads in order, h / g neighbours share a cache head
        q, keys, values = q.transpose(1, 2, 0, 3), keys.transpose(1, 2, 0)[:, None], values.transpose(1, 0, 2)[:, None]
        scores = q @ keys / np.sqrt(self.dtype(self.head_width))
        future = np.arange(keys.shape[-1])[None, :] > positions[:, None]
        mixed = softmax(np.where(future, -np.inf, scores)) @ values  # [g, h / g, t, k]
        return self._linear(mixed.transpose(2, 0, 1, 3).reshape(tokens, -1), f"{block}_output")

    def _feed_forward(self, layer, x):
        """silu(x G^T) * (x U^T), then down."""
        gate, up = self._linear(x, f"blk.{layer}.ffn_gate"), self._linear(x, f"blk.{layer}.ffn_up")
        return self._linear(gate / (1 + np.exp(-gate)) * up, f"blk.{layer}.ffn_down")


class KvCache:
    """The keys and values of the `length` positions seen so far, per layer [p, g, k]."""

    def __init__(self):
        self.length = 0
        self._layers = {}

    def append(self, layer, keys, values):
        """Adds the new positions' keys and values and returns the whole."""
        if layer in self._layers:
            keys = np.concatenate([self._layers[layer][0], keys])
            values = np.concatenate([self._layers[layer][1], values])
        self._layers[layer] = (keys, values)
        return keys, values


def softmax(x):
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def log_softmax(x):
    shifted = x - x.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))

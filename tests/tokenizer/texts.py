"""Texts on which tokenizers differ, if they do: all of Unicode, and what splitting rules look at."""
import random
import unicodedata

SPACES = ["\t", "\n", "\v", "\f", "\r", "\r\n", " ", "\x85", "\xa0", "\u1680", "\u180e", "\u2000", "\u2003", "\u2009",
          "\u200a", "\u200b", "\u2028", "\u2029", "\u202f", "\u205f", "\u2060", "\u3000", "\ufeff", "\x1c", "\x1f"]
DIGITS = ["0", "7", "42", "2024", "1234567", "3.14", "1,000,000", "٣", "٤٥٦", "०१२", "৩", "๔๕", "༣", "Ⅷ", "½", "²", "①",
          "㊿", "𝟘𝟙", "𞥐", "𐒠", "〇", "卌", "\U00010d40\U00010d41", "\U00011de0\U00011de1", "\U00016ff4", "\U0001e5f1",
          "௧௨", "١٢٣٤"]
CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'T", "'RE", "'vE", "'LL", "'D", "'ſ", "'x", "''s",
                "’s", "it's", "WE'RE", "they'll'd", "'", "o'clock"]
WORDS = ["the", "Hello", "world", "tokenizer", "Straße", "naïve", "e\u0301te\u0301", "Ελλάδα", "Привет", "мир", "שלום",
         "مرحبا", "नमस्ते", "हिन्दी", "বাংলা", "ภาษาไทย", "한국어", "한국", "日本語", "カタカナ", "ひらがな", "中文分詞", "繁體",
         "ქართული", "አማርኛ", "ភាសាខ្មែរ", "မြန်မာ", "Ꭰꮃꭹ", "ᐃᓄᒃᑎᑐᑦ", "\U00010d4a\U00010d6f", "\U00031350", "\u1c89\ua7cb",
         "\U000105c0\U000105f3", "ǅ", "ªº", "ﬁ"]
EMOJI = ["🙂", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇯🇵", "☃️", "1️⃣", "❤", "🧑🏿‍🚀", "\U0001fae8", "🏴\U000e0067\U000e0062\U000e007f"]
MARKS = ["\u0301", "\u0308\u0323", "\u20dd", "\u093f", "\u0e31", "\u05b7", "\u3099", "\ufe0f", "\u200d", "\u200c",
         "\U0001d165", "\U000e0100"]
PUNCTUATION = list("!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~") + ["...", "->", "==", "!=", "&&", "«»", "—", "…", "¿", "、", "。", "「",
                                                     "￥", "€", "±", "\u1b4e", "\U00011b00", "\U0001e5ff", "\x04", "\x7f"]
CODE = ["def f(x):\n    return x ** 2\n", "for (int i = 0; i < 10; ++i) {\n\t\tsum += a[i];\n}", "#include <vector>\r\n",
        "SELECT * FROM t WHERE a='b';", "https://example.org/a?b=c&d=%20", "{\"k\": [1, 2.5e-3, null]}", "a_b-c::d<T>&",
        "$ rm -rf ./x | grep -v 'y'", "<div class=\"x\">&amp;</div>", "\\frac{1}{2}", "0x7fFF", "日付=\"2024年\"", "```\n```"]
ODD = ["\ufffd", "\ufffe", "\uffff", "\U0010ffff", "\ue000", "\U000f1234", "\u0378", "\U0003fffd", "\U00040000",
       "\U000a1234", "\x01\x02", "\x04", "\x06\x13", "\x7f", "\xad", "\u2066\u2069"]


def any_character(rng, low=1, high=0x10FFFF):
    while True:
        point = rng.randint(low, high)
        if not 0xD800 <= point <= 0xDFFF:
            return chr(point)


def assigned_characters():
    """Letters, marks, numbers, punctuation and symbols, apart from the large regular blocks."""
    chosen = [c for c in map(chr, range(1, 0x32000)) if unicodedata.category(c)[0] in "LMNPSZ"]
    return [c for c in chosen if not unicodedata.name(c, "").startswith(("CJK UNIFIED", "HANGUL SYLLABLE", "EGYPTIAN"))]


def make_texts(count, special, seed):
    """`count` texts without NUL bytes, the same for the same seed."""
    rng = random.Random(seed)
    assigned = assigned_characters()
    lists = [SPACES, SPACES, DIGITS, CONTRACTIONS, WORDS, WORDS, EMOJI, MARKS, PUNCTUATION, CODE, ODD]

    def piece():
        kind = rng.random()
        if kind < 0.55:
            return rng.choice(rng.choice(lists)) * rng.choice([1, 1, 1, 1, 2, 3, 9])
        if kind < 0.70:
            return "".join(rng.choice(assigned) for _ in range(rng.randint(1, 4)))
        if kind < 0.80:
            return any_character(rng)
        if kind < 0.90:
            return any_character(rng, 1, rng.choice([0x7F, 0x24F, 0xFFFF, 0x1FFFF]))
        if kind < 0.94:
            name = rng.choice(special)
            return name if rng.random() < 0.7 else name[:rng.randint(1, len(name))]
        return " "

    texts = ["", " ", "\n", "  ", "\n\n\n", *ODD, *special, "".join(special),
             "a" * 20_000, " " * 20_000, "\n" * 10_000, "7" * 5_000, "!" * 10_000, "é" * 5_000, "ab" * 10_000,
             "\t " * 5_000, "<" * 5_000]
    while len(texts) < count:
        separator = rng.choice(["", "", " "])
        texts.append(separator.join(piece() for _ in range(rng.choice([1, 2, 5, 10, 20, 60]))))
    # Each code point next to a letter, a space and a digit: no class may differ in a single one. Of the large regular
    # blocks and of planes that are empty some are enough.
    points = [c for c in range(1, 0x110000) if not 0xD800 <= c <= 0xDFFF and c % sampling(c) == 0]
    for start in range(0, len(points), 0x2000):
        texts.append("".join(f"a{chr(c)}b {chr(c)}1" for c in points[start:start + 0x2000]))
    return [text.replace("\0", "") for text in texts]


def sampling(point):
    if 0x3400 <= point < 0xA000 or 0xAC00 <= point < 0xD800 or 0xE000 <= point < 0xF900 or 0x17000 <= point < 0x18D00:
        return 16
    if 0x20000 <= point < 0x34000:
        return 8
    return 512 if 0x34000 <= point < 0xE0000 or point > 0xE01FF else 1

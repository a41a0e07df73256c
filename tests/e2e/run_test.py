#!/usr/bin/env python3
"""`tenon run` from outside: what it prints where, how it ends, and what it says when something is wrong.

    run_test.py TENON MODEL [unittest options]

MODEL is an instruct model with a ChatML template. The program must find its plugins by itself, as it does in a build
tree and when installed.
"""

import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TENON, MODEL = "", ""
CLOSING_LINE = re.compile(r"load [\d.]+ s \| prompt \d+ tokens, [\d.]+ tokens/s \| generated (\d+) tokens")
TIMEOUT_S = 300


def tenon(*arguments, stdin=b"", program=None, environment=None):
    """Runs the program; returns (exit code, stdout as bytes, stderr as text)."""
    done = subprocess.run([program or TENON, *arguments], input=stdin, capture_output=True, check=False,
                          timeout=TIMEOUT_S, env={**os.environ, **(environment or {})})
    return done.returncode, done.stdout, done.stderr.decode()


def run(*arguments, **more):
    return tenon("run", MODEL, *arguments, **more)


class Text(unittest.TestCase):
    """What is generated."""

    def text(self, *arguments, stdin=b""):
        code, out, err = run(*arguments, stdin=stdin)
        self.assertEqual(code, 0, err)
        return out.decode()  # fails for what isn't UTF-8

    def test_is_the_greedy_continuation_that_score_tells(self):
        prompt = "def fibonacci(n):\n    "
        code, out, err = tenon("score", MODEL, "-p", prompt, "--greedy", "24", "--precision", "exact", "--json")
        self.assertEqual(code, 0, err)
        ids = " ".join(map(str, json.loads(out)["greedy"]))
        code, expected, err = tenon("tokenize", MODEL, "--decode", ids)
        self.assertEqual(code, 0, err)
        got = self.text("--raw", "-p", prompt, "-n", "24", "--temp", "0", "--precision", "exact")
        self.assertTrue(got)
        self.assertEqual(got.rstrip("\n"), expected.decode().rstrip("\n"))

    def test_is_the_same_however_the_prompt_comes(self):
        options = ("--temp", "0", "-n", "12")
        expected = self.text("-p", "Name a colour.", *options)
        self.assertEqual(self.text(*options, stdin=b"Name a colour.\n"), expected)
        self.assertEqual(self.text("-f", "-", *options, stdin=b"Name a colour."), expected)
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"Name a colour.\n")
            file.flush()
            self.assertEqual(self.text("-f", file.name, *options), expected)

    def test_answers_through_the_chat_template_unless_raw(self):
        options = ("--temp", "0", "-n", "16")
        rendered = ("<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
                    "<|im_start|>user\nName three colours.<|im_end|>\n<|im_start|>assistant\n")
        answer = self.text("-p", "Name three colours.", *options)
        self.assertEqual(answer, self.text("--raw", "-p", rendered, *options))
        self.assertNotEqual(answer, self.text("--raw", "-p", "Name three colours.", *options))

    def test_ends_before_a_stop_string(self):
        options = ("--raw", "-p", "Once upon a time", "--temp", "0", "-n", "32")
        whole = self.text(*options)
        for begin, size in ((3, 1), (9, 4), (20, 11)):
            stop = whole[begin:begin + size]
            with self.subTest(stop=stop):
                self.assertEqual(self.text(*options, "--stop", "never to be seen", "--stop", stop), whole[:whole.find(stop)])

    def test_is_as_long_as_asked(self):
        for tokens in (0, 1, 7):
            code, out, err = run("--raw", "-p", "One two", "-n", str(tokens), "--ignore-eos", "--temp", "0")
            self.assertEqual(code, 0, err)
            self.assertEqual(CLOSING_LINE.search(err).group(1), str(tokens))
            self.assertEqual(bool(out), tokens > 0)

    def test_is_that_of_the_seed(self):
        def sampled(seed):
            return self.text("--raw", "-p", "My favourite", "-n", "24", "--temp", "1.5", "--top-k", "0", "--seed", seed)
        self.assertEqual(sampled("1"), sampled("1"))
        self.assertGreater(len({sampled(seed) for seed in ("1", "2", "3")}), 1)

    def test_is_always_utf8(self):
        for seed in range(3):
            self.text("--raw", "-p", "\U0001f600\U0001f680", "-n", "48", "--temp", "5", "--top-k", "0", "--top-p", "1",
                      "--min-p", "0", "--seed", str(seed), "--ignore-eos")

    def test_ends_where_the_model_ends_it(self):
        code, _, err = run("-p", "What is 2+2? Answer with one number.", "--temp", "0", "-n", "400", "--stats")
        self.assertEqual(code, 0, err)
        self.assertIn(json.loads(err.splitlines()[-1])["end"], ("end of generation", "max tokens"))

    def test_of_an_empty_prompt_begins_with_bos(self):
        code, _, err = run("--raw", "-p", "", "-n", "2")
        self.assertEqual(code, 0, err)
        self.assertIn("prompt 1 tokens", err)


class Vocabulary(unittest.TestCase):
    def test_top_lists_every_token_once_and_nothing_else(self):
        code, out, err = tenon("score", MODEL, "-p", "Hello", "--top", "100000000", "--json")
        self.assertEqual(code, 0, err)
        ids = sorted(id for id, _ in json.loads(out)["top"])
        self.assertEqual(ids, list(range(len(ids))))
        self.assertEqual(tenon("tokenize", MODEL, "--decode", str(ids[-1]))[0], 0)
        self.assertNotEqual(tenon("tokenize", MODEL, "--decode", str(ids[-1] + 1))[0], 0)


class Streams(unittest.TestCase):
    """What goes where."""

    def test_quiet_leaves_stderr_empty(self):
        self.assertEqual(run("-p", "Hi", "-n", "3", "--quiet")[2], "")

    def test_closing_line_and_no_text_on_stderr(self):
        code, out, err = run("--raw", "-p", "Hello", "-n", "5", "--temp", "0")
        self.assertEqual(code, 0, err)
        self.assertRegex(err, CLOSING_LINE)
        self.assertEqual(err.count("\n"), 1)
        self.assertNotIn(b"tokens/s", out)

    def test_stats_is_one_line_of_json(self):
        code, _, err = run("-p", "Hi", "-n", "9", "--ignore-eos", "--quiet", "--stats")
        self.assertEqual(code, 0)
        self.assertEqual(err.count("\n"), 1)
        stats = json.loads(err)
        self.assertEqual(stats["generated_tokens"], 9)
        self.assertEqual(set(stats["after_first_token"].values()), {0})

    def test_text_comes_as_it_is_made(self):
        command = [TENON, "run", MODEL, "--raw", "-p", "Once", "-n", "200", "--ignore-eos", "--temp", "0", "--quiet"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
            pieces = 0
            while os.read(process.stdout.fileno(), 1 << 16):
                pieces += 1
        self.assertEqual(process.returncode, 0)
        self.assertGreater(pieces, 3)  # a buffered program would write a few hundred bytes at once

    def test_a_reader_that_goes_ends_the_program(self):
        command = [TENON, "run", MODEL, "--raw", "-p", "Once", "-n", "4000", "--ignore-eos", "--quiet"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.read(1)
            process.stdout.close()
            self.assertEqual(process.wait(TIMEOUT_S), 1)
            self.assertEqual(process.stderr.read(), b"")


class Interruption(unittest.TestCase):
    """Signals."""

    def interrupt(self, number):
        command = [TENON, "run", MODEL, "--raw", "-p", "Once upon a time", "--ignore-eos", "--ctx", "8192"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.read(8)
            process.send_signal(number)
            begin = time.monotonic()
            out, err = process.communicate(timeout=60)
        return process.returncode, out, err.decode(), time.monotonic() - begin

    def test_ends_the_text_and_tells_the_times(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number):
                code, out, err, seconds = self.interrupt(number)
                self.assertEqual(code, 130, err)
                self.assertRegex(err, CLOSING_LINE)
                self.assertIn("interrupted", err)
                self.assertLess(seconds, 20)
                out.decode()

    def test_twice_ends_the_program(self):
        command = [TENON, "run", MODEL, "--raw", "-p", "Once", "--ignore-eos", "--ctx", "8192", "--quiet"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
            process.stdout.read(1)
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGINT)
            self.assertIn(process.wait(60), (130, -signal.SIGINT))


class Failures(unittest.TestCase):
    """What is said when something is wrong; stdout stays empty."""

    def fails(self, code, parts, *arguments, **more):
        got, out, err = tenon(*arguments, **more)
        self.assertEqual(got, code, err)
        self.assertEqual(out, b"")
        self.assertTrue(err.startswith("tenon run: "), err)
        for part in parts:
            self.assertIn(part, err)

    def test_missing_model(self):
        self.fails(1, ["/nowhere/model.gguf"], "run", "/nowhere/model.gguf", "-p", "x")
        self.fails(1, ["/tmp"], "run", "/tmp", "-p", "x")

    def test_not_a_model(self):
        self.fails(1, [__file__], "run", __file__, "-p", "x")

    def test_unknown_device(self):
        self.fails(1, ["nonsense"], "run", MODEL, "-p", "x", "--device", "nonsense")
        self.fails(1, ["cpu:77"], "run", MODEL, "-p", "x", "--device", "cpu:77")
        self.fails(1, ["colour"], "run", MODEL, "-p", "x", "--device", "cpu:colour=red")

    def test_no_plugins(self):
        with tempfile.TemporaryDirectory() as folder:
            alone = shutil.copy(TENON, pathlib.Path(folder) / "tenon")
            home = {"HOME": folder, "XDG_DATA_HOME": folder, "XDG_DATA_DIRS": folder, "TENON_PLUGIN_PATH": ""}
            self.fails(1, ["plugin"], "run", MODEL, "-p", "x", program=alone, environment=home)
            self.fails(1, ["plugin"], "run", MODEL, "-p", "x", "--plugin-dir", folder, program=alone, environment=home)

    def test_no_devices_is_a_failure_in_both_forms(self):
        with tempfile.TemporaryDirectory() as folder:
            alone = shutil.copy(TENON, pathlib.Path(folder) / "tenon")
            home = {"HOME": folder, "XDG_DATA_HOME": folder, "XDG_DATA_DIRS": folder, "TENON_PLUGIN_PATH": ""}
            for options, expected in (([], b""), (["--json"], b'{"devices":[]}\n')):
                with self.subTest(options=options):
                    code, out, err = tenon("devices", *options, program=alone, environment=home)
                    self.assertEqual((code, out), (1, expected), err)
                    self.assertIn("plugin", err)

    def test_prompt_longer_than_the_context(self):
        self.fails(1, ["33 tokens", "holds 32", "--ctx"], "run", MODEL, "--raw", "-p", " a" * 33, "--ctx", "32")

    def test_other_chat_template(self):
        with tempfile.TemporaryDirectory() as folder:
            other = pathlib.Path(folder) / "other.gguf"
            data = bytearray(pathlib.Path(MODEL).read_bytes())
            begin = data.index(b"tokenizer.chat_template")
            template = data[begin:begin + 2048]
            data[begin:begin + 2048] = template.replace(b"<|im_start|>", b"<|turn_has|>").replace(b"<|im_end|>", b"<|turn_z|>")
            other.write_bytes(data)
            self.fails(1, ["--raw", "template"], "run", str(other), "-p", "x")
            self.assertEqual(tenon("run", str(other), "--raw", "-p", "x", "-n", "1")[0], 0)

    def test_wrong_usage(self):
        for arguments in ([], [MODEL, "-p", "x", "--temp", "warm"], [MODEL, "-p", "x", "-n", "-1"],
                          [MODEL, "-p", "x", "-f", "y"], [MODEL, "-p", "x", "--nonsense"],
                          [MODEL, "-p", "x", "--pin", "no device"], [MODEL, "-p", "x", "--pin", "(=cpu"],
                          [MODEL, "-p", "x", "--precision", "rough"], [MODEL, "-p", "x", "--threads", "0"],
                          [MODEL, "-p", "x", "--ctx", "0"]):
            with self.subTest(arguments=arguments):
                self.fails(2, ["--help"], "run", *arguments)

    def test_wrong_sampling_is_told_before_the_model_is_opened(self):
        for option, value, named in (("--top-p", "0", "top-p"), ("--repeat-penalty", "0", "repeat penalty"),
                                     ("--min-p", "1.5", "min-p"), ("--temp", "-1", "temp")):
            with self.subTest(option=option, value=value):
                self.fails(2, [named, "--help"], "run", "/nowhere/model.gguf", "-p", "x", option, value)

    def test_no_prompt_on_a_terminal(self):
        primary, secondary = pty.openpty()
        done = subprocess.run([TENON, "run", MODEL], stdin=secondary, capture_output=True, check=False, timeout=TIMEOUT_S)
        os.close(primary)
        os.close(secondary)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"-p TEXT", done.stderr)


class Context(unittest.TestCase):
    def test_full_ends_the_text_and_is_told(self):
        code, out, err = run("--raw", "-p", "Once upon a time", "--ignore-eos", "--ctx", "20", "--temp", "0")
        self.assertEqual(code, 0, err)
        self.assertIn("context of 20 tokens is full", err)
        # Four tokens of prompt fill the first places; the last token drawn needs none.
        self.assertEqual(CLOSING_LINE.search(err).group(1), "17")
        self.assertTrue(out)

    def test_longer_than_trained_is_told(self):
        self.assertIn("8192", run("--raw", "-p", "x", "-n", "1", "--ctx", "9000")[2])

    def test_bounds_nothing_else(self):
        """The text doesn't depend on how much context there is behind it."""
        options = ("--raw", "-p", "Once upon a time", "-n", "24", "--temp", "0")
        self.assertEqual(len({run(*options, "--ctx", size)[1] for size in ("32", "256", "257", "4096")}), 1)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    TENON, MODEL = str(pathlib.Path(sys.argv[1]).resolve()), str(pathlib.Path(sys.argv[2]).resolve())
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)

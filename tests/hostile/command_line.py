#!/usr/bin/env python3
"""The command line's own promises: exit codes, where text goes, and what happens when it can't be written.

Usage: command_line.py TENON
"""

import os
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TENON = ""
EMPTY_FILE = b"GGUF" + struct.pack("<IQQ", 3, 0, 0)


def run(*arguments, **options):
    options = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "timeout": 60,
    } | options
    return subprocess.run([TENON, *arguments], **options)


class CommandLine(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="tenon-cli-")
        self.addCleanup(self.folder.cleanup)
        self.model = Path(self.folder.name) / "small.gguf"
        self.model.write_bytes(EMPTY_FILE)

    def wrong_usage(self, *arguments, word):
        done = run(*arguments)
        self.assertEqual(done.returncode, 2, arguments)
        self.assertEqual(done.stdout, b"")
        self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
        self.assertIn(word, done.stderr.decode())

    def test_version_and_help_go_to_stdout(self):
        version = run("--version")
        self.assertEqual((version.returncode, version.stderr), (0, b""))
        self.assertRegex(version.stdout.decode(), r"^tenon \d+\.\d+\.\d+\n$")
        overview = run("--help")
        self.assertEqual((overview.returncode, overview.stderr), (0, b""))
        for other in (["-h"], ["help"]):
            self.assertEqual(run(*other).stdout, overview.stdout)

    def test_every_command_explains_itself(self):
        listed = run("--help").stdout.decode().split("Commands:\n")[1].split("\n\n")[0].splitlines()
        names = [line.split()[0] for line in listed]
        self.assertIn("inspect", names)
        self.assertEqual(names, sorted(names))
        for name in names:
            with self.subTest(name):
                done = run(name, "--help")
                self.assertEqual((done.returncode, done.stderr), (0, b""))
                self.assertTrue(done.stdout.startswith(b"Usage: tenon " + name.encode()))
                self.assertEqual(run("help", name).stdout, done.stdout)
                self.wrong_usage(name, "--no-such-option", word="--no-such-option")

    def test_wrong_usage(self):
        self.wrong_usage(word="no command")
        self.wrong_usage("inpsect", word="did you mean 'inspect'")
        self.wrong_usage("--versoin", word="did you mean '--version'")
        self.wrong_usage("help", "nothing-like-it", word="unknown command 'nothing-like-it'")
        self.wrong_usage("--version", "x", word="'x'")
        self.wrong_usage("inspect", word="MODEL")
        self.wrong_usage("inspect", "a", "b", word="'b'")
        self.wrong_usage("inspect", "a", "--jso", word="did you mean '--json'")
        self.wrong_usage("inspect", "a", "--json=1", word="--json")
        self.wrong_usage("two\tcolumns\x1b[31m", word="two\\tcolumns\\x1b[31m")

    def test_output_that_cannot_be_written_is_a_failure(self):
        for arguments in (
            ["--help"],
            ["inspect", str(self.model)],
            ["inspect", str(self.model), "--json"],
            ["inspect", "-h"],
        ):
            with self.subTest(arguments), open("/dev/full", "wb") as full:
                done = run(*arguments, stdout=full)
                self.assertEqual(done.returncode, 1)
                self.assertIn(b"No space left", done.stderr)

    def test_a_reader_that_has_gone_ends_the_command_quietly(self):
        reading, writing = os.pipe()
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            done = run("inspect", str(self.model), stdout=pipe)
        self.assertEqual((done.returncode, done.stderr), (1, b""))

    def test_closed_standard_streams(self):
        shell = ["sh", "-c", 'exec "$0" inspect "$1" <&- >&-', TENON, str(self.model)]
        done = subprocess.run(shell, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"can't be written", done.stderr)
        self.assertEqual(self.model.read_bytes(), EMPTY_FILE)


if __name__ == "__main__":
    TENON = sys.argv.pop(1)
    unittest.main(verbosity=1)

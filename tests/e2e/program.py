"""What scripts that drive the program have in common."""

import subprocess


def run(*command, code=0, env=None, timeout=300):
    """Runs a command, which must end with `code`. What it printed on stdout; on stderr where that is nothing."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env)
    if done.returncode != code:
        raise SystemExit(f"{command}: exit code {done.returncode}, not {code}: {done.stdout}{done.stderr}")
    return done.stdout or done.stderr


def check(holds, what):
    if not holds:
        raise SystemExit(f"FAIL  {what}")
    print(f"ok    {what}")

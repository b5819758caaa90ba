"""Runs the examples of the merchants' pages in docs/ as they stand, twice: for each page, all examples of a
language together, top to bottom. Also checks that every `backhaul` command in the documentation is one
that the command line accepts.

Reads AUTH_URL, ORDERS_URL, CLIENT_ID and CLIENT_SECRET from the environment and expects `backhaul` on the
PATH. Exits non-zero when an example or a command fails.
"""

import base64
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from code_blocks import ROOT, blocks, pages, runnable

PAGES = ["publish-your-first-order.md", "verify-a-signature.md"]
RUNNERS = {
    "sh": ("example.sh", ["bash", "-euo", "pipefail"]),
    "python": ("example.py", [sys.executable]),
    "js": ("example.mjs", ["node"]),
}


def run_examples(page, folder, environment):
    unknown = {language for language, _, _ in blocks(page)} - set(RUNNERS)
    assert not unknown, f"{page.name}: there is no runner for examples in {unknown}"
    failed = False
    for language, (name, command) in RUNNERS.items():
        parts = runnable(page, language)
        assert parts, f"{page.name} has no example in {language}"
        (folder / name).write_text("\n".join(parts))
        result = subprocess.run([*command, name], cwd=folder, env=environment, text=True, capture_output=True, timeout=60)
        print(f"{page.name}: {len(parts)} examples in {language} {'failed' if result.returncode else 'passed'}")
        if result.returncode:
            failed = True
            print(result.stdout + result.stderr)
    return failed


def documented_commands():
    """Every `backhaul` command line in shell examples of the documentation, with its page."""
    for page in pages():
        for language, text, _ in blocks(page):
            if language != "sh":
                continue
            for line in text.replace("\\\n", " ").splitlines():
                found = re.search(r"(?:^ *|\$\()backhaul ([^|<>)]*)", line.split(" # ")[0])
                if found:
                    yield page.name, shlex.split(found[1])


def check_commands(environment):
    """Asks for the help of each command with all its arguments: unknown ones are rejected first."""
    failed, checked = False, 0
    for page, arguments in documented_commands():
        result = subprocess.run(["backhaul", *arguments, "--help"], env=environment, text=True, capture_output=True, timeout=10)
        checked += 1
        if result.returncode:
            failed = True
            print(f"{page}: backhaul {shlex.join(arguments)}\n{result.stderr}")
    assert checked, "the documentation has no backhaul commands"
    print(f"{checked} backhaul commands {'failed' if failed else 'are accepted'}")
    return failed


def main():
    # Each language is a process of its own, and all of them use one secret.
    secret = "whsec_" + base64.b64encode(os.urandom(32)).decode()
    environment = {**os.environ, "SIGNING_SECRET": secret, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # People run a guide again when something went wrong.
        failed = [run_examples(ROOT / "docs" / page, folder, environment) for _again in range(2) for page in PAGES]
    failed.append(check_commands(environment))
    sys.exit(any(failed))


if __name__ == "__main__":
    main()

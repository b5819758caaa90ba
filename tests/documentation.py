"""Runs the shell examples of README.md, docs and examples against a running stack with the data of the tour, for
each page all examples together, top to bottom. Fails if a page has an example that no test runs and that has no
comment with the reason: <!-- not run: needs Kubernetes -->

usage: documentation.py [--list]

Expects the variables of .run/env in the environment and the programs on the PATH.

  --list  run nothing; check only that each example is run by a test or has a reason
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from code_blocks import ROOT, pages, runnable
from merchants_guide import PAGES as MERCHANTS_PAGES

# Pages that this test runs, in this order, with texts that it replaces. The first one creates the merchant acme.
STACK_PAGES = {
    "docs/onboard-a-merchant.md": {},
    "docs/command-line.md": {},
    "README.md": {"acme": "acme-readme"},
    "docs/settings.md": {},
    "docs/check-the-backlog.md": {},
    "docs/find-out-why-a-message-did-not-arrive.md": {"<id>": "$DELIVERY_ID"},
    "docs/look-up-a-return.md": {},
    "docs/people.md": {"joe@": "jo@"},
    "docs/replay-dead-letters.md": {"<id>": "$DELIVERY_ID"},
    "docs/back-up-and-restore.md": {},
    "docs/make-the-portal-yours.md": {},
}
# Run before the examples of a page: a delivery that exists.
PREPARE = """
DELIVERY_ID=$(backhaul deliveries list --json | grep -oE '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}' | head -n 1)
export DELIVERY_ID
"""


def unrun():
    """Pages with examples that no test runs."""
    run = {*STACK_PAGES, *(f"docs/{page}" for page in MERCHANTS_PAGES)}
    return [name for name in (str(page.relative_to(ROOT)) for page in pages())
            if name not in run and runnable(ROOT / name, "sh")]


def run_page(name, replaced, folder):
    parts = runnable(ROOT / name, "sh")
    text = "\n".join(parts)
    for old, new in replaced.items():
        text = text.replace(old, new)
    (folder / "example.sh").write_text(PREPARE + text)
    # -x shows the command that failed.
    result = subprocess.run(["bash", "-euxo", "pipefail", "example.sh"], cwd=folder, text=True,
                            capture_output=True, timeout=600, env=os.environ)
    print(f"{name}: {len(parts)} examples {'failed' if result.returncode else 'passed'}")
    if result.returncode:
        print(result.stdout[-4000:] + result.stderr[-4000:])
    return result.returncode


def main():
    failed = [f"{name}: no test runs its examples" for name in unrun()]
    missing = [name for name in STACK_PAGES if not runnable(ROOT / name, "sh")]
    failed += [f"{name}: there is no example to run" for name in missing]
    if sys.argv[1:] != ["--list"]:
        with tempfile.TemporaryDirectory() as folder:
            failed += [name for name, replaced in STACK_PAGES.items() if run_page(name, replaced, Path(folder))]
    print("\n".join(f"FAILED: {one}" for one in failed) or "every shell example is run by a test or has a reason")
    sys.exit(bool(failed))


main()

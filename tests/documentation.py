"""Runs the shell examples of README.md, docs and examples against a running stack with the data of the demo scenario, for
each page all examples together, top to bottom, and parses the JSON and TOML examples. Fails if a page has an example
that no test runs and that has no comment with the reason: <!-- not run: needs Kubernetes -->
Output of programs is `text`. Also fails if a link leads to a file or a heading that does not exist,
or if the header of no module names a decision record.

usage: documentation.py [--list]

Expects the variables of .run/env in the environment and the programs on the PATH.

  --list  run nothing; check only the links, and that each example is run by a test or has a reason, and parse JSON and TOML
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from code_blocks import ROOT, blocks, pages, runnable
from merchants_guide import PAGES as MERCHANTS_PAGES

ID = "grep -oE '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}' | head -n 1"
SLOW_REPLAY = f"backhaul deliveries replay --merchant demo --kind rma --state delivered --per-second 1 --json | {ID}"
# Pages that this test runs, in this order, with texts that it replaces. The first one creates the merchant acme, whose
# endpoints and orders do not exist; those of the merchant demo do. Variables of the environment are replaced in the
# new text, because shells leave single quotes alone; the others are set by PREPARE.
STACK_PAGES = {
    "docs/onboard-a-merchant.md": {"endpoint check acme": "endpoint check demo"},
    "docs/command-line.md": {"show 1001 --merchant acme": "show $PORTAL_ORDER --merchant demo"},
    "README.md": {"acme": "acme-readme"},
    "docs/settings.md": {},
    "docs/check-the-backlog.md": {},
    "docs/find-out-why-a-message-did-not-arrive.md": {"<id>": "$DELIVERY_ID", "check acme": "check demo"},
    "docs/look-up-a-return.md": {"show RMA-0123456789ABCDEF --merchant acme": "show $RMA --merchant demo"},
    "docs/work-with-returns.md": {},
    "docs/receive-messages.md": {"https://api.acme.example": "$SANDBOX_URL", "acme": "demo",
                                 "0198c0de-0000-7abc": "$DELIVERY_ID", "RMA-1": "$RMA"},
    "docs/hear-about-failures.md": {"https://api.acme.example": "$SANDBOX_URL", "acme": "demo"},
    "docs/link-to-the-portal.md": {"A-1001": "$PORTAL_ORDER"},
    "docs/use-the-portal.md": {},
    "docs/erase-a-shopper.md": {"acme --email ada@shopper.example": "demo --email $PORTAL_EMAIL"},
    "docs/people.md": {"joe@": "jo@"},
    # A replay of one message per second is not finished when the examples pause and stop it.
    "docs/replay-dead-letters.md": {"replays show <id>": f"replays show $({SLOW_REPLAY} | tee replay)",
                                    "replays pause <id>": "replays pause $(cat replay)",
                                    "replays resume <id>": "replays resume $(cat replay)",
                                    "replays stop <id>": "replays stop $(cat replay)",
                                    "<id>": "$DELIVERY_ID"},
    "docs/rotate-keys-and-secrets.md": {},
    "docs/back-up-and-restore.md": {},
    "docs/make-the-portal-yours.md": {},
    "docs/write-a-returns-policy.md": {},
}
# Run before the examples of a page: a delivery and a return that exist, and a token of the merchant demo.
PREPARE = f"""
DELIVERY_ID=$(backhaul deliveries list --merchant demo --json | {ID})
RMA=$(backhaul returns list --json | grep -oE 'RMA-[0-9A-Z]{{16}}' | head -n 1)
TOKEN=$(backhaul token)
export DELIVERY_ID RMA TOKEN
"""
PARSERS = {"json": json.loads, "toml": tomllib.loads}


def unrun():
    """Pages with examples that no test runs."""
    run = {*STACK_PAGES, *(f"docs/{page}" for page in MERCHANTS_PAGES)}
    return [name for name in (str(page.relative_to(ROOT)) for page in pages())
            if name not in run and runnable(ROOT / name, "sh")]


def faulty(page):
    """The examples of a page that are neither run nor parsed, or that cannot be parsed. Output (`text`) is neither."""
    for language, text, reason in blocks(page):
        first = text.splitlines()[0]
        if language in PARSERS:
            try:
                PARSERS[language](text)
            except ValueError as error:
                yield f"{first}: {error}"
        elif not language:
            yield f"{first}: the example has no language; output is `text`"
        elif language not in ("sh", "python", "js", "text") and reason is None:
            yield f"{first}: no test runs examples in {language}"


def anchors(page):
    """The anchors of the headings of a page."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page):
    """The links of a page to files or headings that do not exist."""
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if ":" in path:
            continue
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            yield f"the link {link} leads nowhere"


def decisions():
    """Decision records that no file names in its first lines, and names of records that do not exist."""
    named = {}
    for folder in ["crates", "tests", "scripts", "deploy"]:
        for file in (ROOT / folder).rglob("*"):
            if file.is_file() and file.suffix in (".rs", ".yaml", ".sql", ""):
                start = "\n".join(file.read_text().splitlines()[:60])
                named |= {name: file for name in re.findall(r"docs/decisions/([a-z-]+)\.md", start)}
    records = {page.stem for page in (ROOT / "docs/decisions").glob("*.md")} - {"README"}
    yield from (f"docs/decisions/{name}.md: no file that implements it names it" for name in sorted(records - set(named)))
    yield from (f"{named[name].relative_to(ROOT)}: there is no decision {name}" for name in sorted(set(named) - records))


def run_page(name, replaced, folder):
    parts = runnable(ROOT / name, "sh")
    text = "\n".join(parts)
    for old, new in replaced.items():
        assert old in text, f"{name}: there is no {old} to replace"
        text = text.replace(old, os.path.expandvars(new))
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
    failed += [f"{page.relative_to(ROOT)}: {fault}" for page in pages() for fault in faulty(page)]
    linking = [*pages(), ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"]
    failed += [f"{page.relative_to(ROOT)}: {fault}" for page in linking for fault in broken_links(page)]
    failed += decisions()
    missing = [name for name in STACK_PAGES if not runnable(ROOT / name, "sh")]
    failed += [f"{name}: there is no example to run" for name in missing]
    if sys.argv[1:] != ["--list"]:
        with tempfile.TemporaryDirectory() as folder:
            failed += [name for name, replaced in STACK_PAGES.items() if run_page(name, replaced, Path(folder))]
    print("\n".join(f"FAILED: {one}" for one in failed) or "every example is run or parsed by a test, or has a reason")
    sys.exit(bool(failed))


main()

"""The code blocks of README.md, docs and examples."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"(?:^ *<!-- not run: (.+?) -->\n)?^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def pages():
    """All pages with code."""
    folders = ["docs/**/*.md", "examples/**/*.md", "crates/*/README.md", "tests/*/README.md"]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(page for each in folders for page in sorted(ROOT.glob(each)))]


def blocks(page):
    """The fenced code of a page: language, text, and the reason why no test runs it, or None.

    The reason is in a comment in the line before the block: <!-- not run: needs Kubernetes -->
    """
    return [(language, text, reason or None) for reason, language, text in FENCE.findall(page.read_text())]


def runnable(page, language):
    """The blocks of a language that a test must run."""
    return [text for known, text, reason in blocks(page) if known == language and reason is None]

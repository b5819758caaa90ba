"""Runs the examples of docs/merchants.md as they stand: all of a language together, top to bottom.

Reads AUTH_URL, ORDERS_URL, CLIENT_ID and CLIENT_SECRET from the environment, and signed messages from
standard input (one JSON object a line). Exits non-zero when an example fails.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

GUIDE = Path(__file__).resolve().parent.parent / "docs/merchants.md"
RUN = {
    "sh": ("guide.sh", ["bash", "-euo", "pipefail"]),
    "python": ("guide.py", [sys.executable]),
    "js": ("guide.mjs", ["node"]),
}

blocks = re.findall(r"^```(\w+)\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
message = json.loads(sys.stdin.readline())
environment = {**os.environ, "SIGNING_SECRET": message["secrets"][0], "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
failed = []
with tempfile.TemporaryDirectory() as folder:
    (orders,) = [text for language, text in blocks if language == "json"]
    (Path(folder) / "orders.json").write_text(orders)
    (Path(folder) / "message.json").write_text(json.dumps(message))
    for language, (name, command) in RUN.items():
        parts = [text for known, text in blocks if known == language]
        assert parts, f"the guide has no example in {language}"
        (Path(folder) / name).write_text("\n".join(parts))
        ran = subprocess.run([*command, name], cwd=folder, env=environment, text=True, capture_output=True, timeout=60)
        print(f"{language}: {len(parts)} examples {'failed' if ran.returncode else 'ran'}")
        if ran.returncode:
            failed.append(language)
            print(ran.stdout + ran.stderr)
left = {language for language, _ in blocks} - set(RUN) - {"json"}
assert not left, f"nobody runs the examples in {left}"
sys.exit(bool(failed))

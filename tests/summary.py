#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Summarises a run of `meson test` from Meson's log: failures, skips with their reasons, the slowest tests, the totals.

The last line is "N passed, N failed, N skipped". Exits with 1 if a test failed or none ran.

usage: summary.py LOG.json...
"""

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

SLOWEST = 10
TAIL = 25  # lines of output shown for a failed test
SKIPPED = re.compile(r"^ok\b[ \d]*(?:- )?([^#\n]*)# SKIP *(.*)$|^1\.\.0 # SKIP *(.*)$", re.MULTILINE | re.IGNORECASE)


def output(test: dict) -> str:
    return (test.get("stdout") or "") + (test.get("stderr") or "")


def skips(test: dict) -> list[str]:
    """Returns the reasons why a test or parts of it were skipped. A test can skip some parts and pass."""
    found = [plan or f"{reason or 'no reason given'} ({part.strip()})" for part, reason, plan in SKIPPED.findall(output(test))]
    if not found and test["result"] == "SKIP":
        lines = output(test).strip().splitlines()
        found = [lines[-1] if lines else "no reason given"]
    return found


def main(logs: list[str]) -> int:
    tests = [json.loads(line) for log in logs if Path(log).exists() for line in Path(log).read_text().splitlines()]
    good = [test for test in tests if test["result"] in ("OK", "EXPECTEDFAIL")]
    skipped = [test for test in tests if test["result"] == "SKIP"]
    bad = [test for test in tests if test not in good and test not in skipped]

    for test in bad:
        print(f"--- {test['name']}: {test['result']}", *output(test).splitlines()[-TAIL:], sep="\n")
    reasons = defaultdict(list)
    for test in tests:
        for reason in skips(test):
            reasons[reason].append(test["name"])
    if reasons:
        print("\nSkipped, in whole or in part:")
        for reason, names in reasons.items():
            print(f"  {', '.join(dict.fromkeys(names))}: {reason}")
    slowest = sorted(tests, key=lambda test: -test["duration"])[:SLOWEST]
    if slowest:
        print("\nSlowest tests:", *(f"{test['duration']:8.1f} s  {test['name']}" for test in slowest), sep="\n")
    if bad:
        print("\nFailed tests:", *(f"  {test['name']}" for test in bad), sep="\n")
    print(f"\n{len(good)} passed, {len(bad)} failed, {len(skipped)} skipped")
    return 1 if bad or not tests else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the project's own copy of recorded cases, cases/*.json: `select.py DIR`, from a directory with all of them.

The output depends only on the directory. Each area has a size limit. Cases are selected in this order until it is
reached: a few cases for each row of differences.md, so that no row is stale in the copy; one for each topic under each
strategy; one for each id, ignoring numbers; then the remaining ones. Error messages, which are never compared, are
truncated.
"""

import fnmatch
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
ROOM = {  # bytes; 2 MB in total
    "variables": 650_000,
    "reduce": 200_000,
    "replica_context": 190_000,
    "run": 150_000,
    "extended": 140_000,
    "input_sharding": 100_000,
    "options": 90_000,
    "input": 80_000,
    "input_misc": 80_000,
    "tpu_device_assignment": 70_000,
    "multi_worker": 60_000,
    "tpu_split": 35_000,
}
OTHER_ROOM = 40_000  # the other areas
MESSAGE = 80  # number of characters that are kept of a text
EACH_ROW = 3  # cases of each strategy for each row of differences.md


def rows() -> list[str]:
    """Returns the patterns of differences.md: "area/glob"."""
    lines = (HERE / "differences.md").read_text(encoding="utf-8").splitlines()
    cells = [line.split("|")[1].strip(" `") for line in lines if line.startswith("|")]
    return [cell for cell in cells if "/" in cell]


def draw(text: str) -> int:
    """Returns a number that depends only on the text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def one_of_each(cases: list[dict], group_of) -> Iterator[dict]:
    """Yields a pseudo-random case of each group, with at most three replicas if there is one."""
    groups: dict[str, list[dict]] = {}
    for case in cases:
        groups.setdefault(case["strategy"]["name"] + " " + group_of(case["id"]), []).append(case)
    for name, members in groups.items():
        small = [case for case in members if case["strategy"].get("num_replicas", 0) <= 3] or members
        yield small[draw(name) % len(small)]


def topic(case_id: str) -> str:
    return re.sub(r"\d+", "0", "/".join(case_id.split("#")[0].split("/")[:3]))


def without_numbers(case_id: str) -> str:
    return re.sub(r"\d+", "0", case_id.split("#")[0])


def in_order(area: str, cases: list[dict], patterns: list[str]) -> Iterator[dict]:
    for pattern in patterns:
        counts: dict[str, int] = {}
        for case in cases:
            name = case["strategy"]["name"]
            if fnmatch.fnmatchcase(f"{area}/{case['id']}", pattern) and counts.get(name, 0) < EACH_ROW:
                counts[name] = counts.get(name, 0) + 1
                yield case
    yield from one_of_each(cases, topic)
    yield from sorted(one_of_each(cases, without_numbers), key=lambda case: draw(case["id"]))
    yield from sorted(cases, key=lambda case: draw(case["id"]))


def cut_messages(value):
    if isinstance(value, list):
        return [cut_messages(item) for item in value]
    if not isinstance(value, dict):
        return value
    made = {key: cut_messages(item) for key, item in value.items()}
    message = made.get("message")
    if isinstance(message, str) and len(message) > MESSAGE + 10:
        made["message"] = message[:MESSAGE] + "...[cut]"
    return made


def needed_by(case: dict, by_id: dict[str, dict]) -> list[dict]:
    """Returns the topology that a device assignment names, which is a separate case."""
    needed = by_id.get("topology/" + str(case["inputs"].get("topology")))
    return [needed] if needed else []


def select(data: dict, patterns: list[str]) -> list[dict]:
    area, cases = data["area"], data["cases"]
    by_id = {case["id"]: case for case in cases}
    room = ROOM.get(area, OTHER_ROOM)
    chosen = set()
    for case in in_order(area, cases, patterns):
        new = [one for one in [case, *needed_by(case, by_id)] if one["id"] not in chosen]
        size = sum(len(as_line(one)) + 2 for one in new)
        if size <= room:
            room -= size
            chosen.update(one["id"] for one in new)
    return [case for case in cases if case["id"] in chosen]


def as_line(case: dict) -> str:
    return json.dumps(cut_messages(case), separators=(",", ":"), ensure_ascii=False)


def main(source: Path) -> None:
    patterns = rows()
    target = HERE / "cases"
    target.mkdir(exist_ok=True)
    total = 0
    for path in sorted(source.glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        cases = select(data, patterns)
        head = {key: value for key, value in data.items() if key != "cases"} | {"num_cases": len(cases)}
        text = json.dumps(head)[:-1] + ', "cases": [\n' + ",\n".join(map(as_line, cases)) + "\n]}\n"
        (target / path.name).write_text(text, encoding="utf-8")
        total += len(text.encode())
        print(f"{path.name:30} {len(cases):5} of {len(data['cases']):5} cases {len(text.encode()):8} bytes")
    print(f"{total} bytes in all")


if __name__ == "__main__":
    if len(sys.argv) != 2 or not list(Path(sys.argv[1]).glob("*.json")):
        sys.exit("usage: select.py DIR: chooses what tests/golden/cases carries of the recordings in DIR")
    main(Path(sys.argv[1]))

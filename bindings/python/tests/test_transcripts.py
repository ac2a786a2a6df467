# SPDX-License-Identifier: Apache-2.0
"""The golden cases, played through Python's API: TRANSCRIPT is the file, by default all of it."""

import collections
import os
import pathlib
import sys
import unittest

TRANSCRIPT = os.environ.get("TRANSCRIPT", "")
if not TRANSCRIPT:
    raise unittest.SkipTest("no transcript: TRANSCRIPT is not set")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "transcripts"))

from given import NotInPython  # noqa: E402
from lines import cases  # noqa: E402
from player import Player  # noqa: E402


class Transcripts(unittest.TestCase):
    def test_every_case(self):
        only = os.environ.get("CASE")
        played, skipped, wrong = 0, collections.Counter(), []
        for area, name, lines in cases(TRANSCRIPT):
            if only and only not in f"{area} {name}":
                continue
            player = Player(lines)
            try:
                faults = player.play()
            except NotInPython as reason:
                skipped[str(reason)] += 1
                continue
            except Exception as error:
                faults = [*player.faults, f"{type(error).__name__}: {error}"]
            played += 1
            if faults:
                wrong.append(f"{area} {name}: {faults[0]}")
        print(f"# {played} cases played; left out:")
        for reason, count in skipped.items():
            print(f"#   {count}: {reason}")
        for text in wrong:
            print(f"# {text}")
        self.assertEqual(wrong, [])
        self.assertTrue(played)
        self.assertLess(100 * sum(skipped.values()), played)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Runs a file of unittest's test cases and tells of them in TAP, for Meson: `tap.py FILE`.

A file that cannot be imported for want of NumPy is skipped; so are files that raise unittest.SkipTest.
"""

import importlib.util
import pathlib
import sys
import traceback
import unittest


class _Result(unittest.TestResult):
    """One line a test, at once."""

    def __init__(self):
        super().__init__()
        self.count = 0
        self.bad = False

    def _line(self, word, test, directive="", detail=""):
        self.count += 1
        print(f"{word} {self.count} - {test.id()}{directive}", flush=True)
        for line in detail.splitlines():
            print(f"# {line}", flush=True)

    def addSuccess(self, test):
        self._line("ok", test)

    def addError(self, test, err):
        self.bad = True
        self._line("not ok", test, detail="".join(traceback.format_exception(*err)))

    addFailure = addError

    def addSkip(self, test, reason):
        self._line("ok", test, f" # SKIP {reason}")

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.addError(subtest, err)


def main(path):
    sys.path.insert(0, str(pathlib.Path(path).parent))
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    try:
        import numpy  # noqa: F401

        spec.loader.exec_module(module)
    except unittest.SkipTest as reason:
        print(f"1..0 # SKIP {reason}")
        return 0
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        print("1..0 # SKIP NumPy is not installed for this Python")
        return 0
    result = _Result()
    unittest.defaultTestLoader.loadTestsFromModule(module).run(result)
    print(f"1..{result.count}")
    return 1 if result.bad or result.count == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what each binding, and the C++ face, offers to the functions of the headers.

    coverage.py [--list LANGUAGE]
    coverage.py --programs NM PROGRAM...

A binding offers a function if its hand-written sources call what SWIG made of it, the C++ face (dist.hpp) if its
headers call the function. A function that a language does not offer needs a row in exceptions.md, and a row that is
no longer true is an error too. Messages use each language's own names, so each function that a language offers has its
name in dist_names.i. --list prints a language's
functions and the files that call them. --programs holds the C++ face's test programs to the same: together they call,
through the face, all that it offers. Exit status: 0, or 1 with what is wrong.
"""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "capi"))
import api  # noqa: E402  the one parser of the headers
TESTS = HERE.parent / "tests" / "abi" / "hpp"

# What dist.i gives another form: a function of another name,
FUNCTIONS = {
    "dist_fail": "fail",
    "dist_submit": "submit",
    "dist_batcher_submit": "batcher_submit",
    "dist_split_to_logical_devices": "split_to_logical_devices",
    "dist_cluster_resolver_create_host": "cluster_resolver_create_host",
    "dist_partitions_fixed_shards": "partitions_fixed_shards",
    "dist_partitions_min_size": "partitions_min_size",
    "dist_partitions_max_size": "partitions_max_size",
}
# a method of Text, whose names other classes have too,
TEXTS = {
    "dist_strategy_explain": "explain",
    "dist_dataset_explain": "explain_dataset",
    "dist_value_describe": "describe_value",
    "dist_variable_describe": "describe_variable",
    "dist_strategy_write_trace": "write_trace",
    "dist_coordinator_write_trace": "write_coordinator_trace",
    "dist_server_write_trace": "write_server_trace",
    "dist_strategy_write_metrics": "write_metrics",
    "dist_topology_explain": "explain_topology",
    "dist_cluster_explain": "explain_cluster",
    "dist_slurm_expand_host_list": "expand_host_list",
}
# a method of Numbers, whose names nothing else has,
NUMBERS = {
    "dist_topology_mesh_shape": "topology_mesh_shape",
    "dist_topology_device_coordinates": "topology_device_coordinates",
    "dist_topology_missing_devices": "topology_missing_devices",
    "dist_device_assignment_core_assignment": "device_assignment_core_assignment",
    "dist_device_assignment_coordinates": "device_assignment_coordinates",
    "dist_device_assignment_lookup_replicas": "device_assignment_lookup_replicas",
    "dist_partition_shard": "partition_shard",
    "dist_value_shard": "value_shard",
    "dist_device_coordinates": "device_coordinates",
}
# or a class.
CLASSES = {"dist_strategy_stragglers": "Stragglers"}


class Language:
    """Where a binding's hand-written sources are, and how they write a call of generated code."""

    def __init__(self, folder, pattern, generated, function, method, named, constructor):
        self.files = [
            path
            for path in sorted((HERE / folder).rglob(pattern))
            if not any(part in path.parts for part in generated) and "test" not in path.name.lower()
        ]
        self.text = {path: path.read_text(encoding="utf-8") for path in self.files}
        self.function, self.method, self.named, self.constructor = function, method, named, constructor

    def callers(self, name):
        """The files that call C's function `name`."""
        forms = [re.compile(form) for form in self.forms(name)]
        return [path for path, text in self.text.items() if all(form.search(text) for form in forms)]

    def forms(self, name):
        """What all has to be in a file that calls it."""
        if name in TEXTS:
            return [self.method(TEXTS[name]), self.named("Text")]
        if name in NUMBERS:
            return [self.method(NUMBERS[name])]
        if name in CLASSES:
            return [self.constructor(CLASSES[name])]
        if name.endswith("_init"):
            return [self.constructor(name[: -len("_init")])]
        return [self.function(FUNCTIONS.get(name, name))]


class Face(Language):
    """The C++ face: headers that call C's functions, or hand them to what does, by their own names."""

    def __init__(self, folder):
        super().__init__(folder, "*.hpp", (), None, None, None, None)
        # Without comments, where a name is no call.
        self.text = {path: re.sub(r"//.*", "", text) for path, text in self.text.items()}

    def forms(self, name):
        return [rf"\b{name}\s*[(,)]"]


def upper(name):
    return name[0].upper() + name[1:]


LANGUAGES = {
    "Go": Language(
        "go",
        "*.go",
        ("internal", "examples"),
        lambda name: rf"cdist\.{upper(name)}\b",
        lambda name: rf"\.{upper(name)}\b",
        lambda name: rf"cdist\.(?:New)?{name}\b",
        lambda name: rf"cdist\.New{upper(name)}\(",
    ),
    "Java": Language(
        "java/src/main",
        "*.java",
        (),
        lambda name: rf"DistModule(?:\.|::){name}\b",
        lambda name: rf"(?:\.|::){name}\b",
        lambda name: rf"org\.libdist\.internal\.{name}\b",
        lambda name: rf"new {name}\(",
    ),
    "Python": Language(
        "python",
        "*.py",
        ("tests", "examples"),
        lambda name: rf"_cdist\.{name}\b",
        lambda name: rf"\.{name}\b",
        lambda name: rf"_cdist\.{name}\b",
        lambda name: rf"_cdist\.{name}\(",
    ),
    "C++": Face("../include/dist"),
}


def header_functions():
    """Returns the functions of the headers, and the stable ones among them."""
    functions = api.parse(api.HEADERS)["functions"]
    stable = [function["name"] for function in functions if not function["experimental"]]
    return [function["name"] for function in functions], stable


def exceptions():
    """(function, language) -> the reason, from the table in exceptions.md."""
    rows = {}
    for line in (HERE / "exceptions.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("| `") or len(cells) != 3:
            continue
        languages = list(LANGUAGES) if cells[1] == "all" else [name.strip() for name in cells[1].split(",")]
        for function in re.findall(r"`(\w+)`", cells[0]):
            for language in languages:
                rows[function, language] = cells[2]
    return rows


def names(functions, excused):
    """Functions without a row in dist_names.i, or whose row does not say what the language calls them."""
    text = (HERE / "dist_names.i").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^(dist_[a-z]\w*) \| (.*)$", text, re.MULTILINE))
    for function in functions:
        cells = dict(zip(("Go", "Java", "Python"), rows.get(function, "- | - | -").split(" | "), strict=True))
        for language, name in cells.items():
            if name == "-" and (function, language) not in excused and not function.endswith("_init"):
                yield f"dist_names.i does not say what {function} is called in {language}"


def python_texts():
    """Texts of the package that would show a name of C."""
    for path in sorted((HERE / "python" / "libdist").glob("**/*.py")):
        for name in re.findall(r'"(dist_[a-z]\w*)', path.read_text(encoding="utf-8")):
            yield f"python/{path.relative_to(HERE / 'python')}: a text contains {name}, a name of C"


def check():
    (functions, stable), excused, wrong = header_functions(), exceptions(), []
    for function, language in excused:
        if function not in functions:
            wrong.append(f"exceptions.md: {function} is no function of the headers")
        if language not in LANGUAGES:
            wrong.append(f"exceptions.md: {language} is no binding's name")
    for name, language in LANGUAGES.items():
        for function in functions:
            offered = bool(language.callers(function))
            if not offered and (function, name) not in excused:
                wrong.append(f"{name} does not offer {function}, and exceptions.md does not say why")
            if offered and (function, name) in excused:
                wrong.append(f"{name} offers {function}, though exceptions.md says that it does not")
        offered = [sum((one, name) not in excused for one in some) for some in (functions, stable)]
        print(f"{name}: {offered[0]} of {len(functions)} functions, {offered[1]} of the {len(stable)} stable ones")
    return [*wrong, *names(functions, excused), *python_texts()]


def check_programs(nm, programs):
    """What the test programs of the C++ face do not call, though it offers it."""
    called = set()
    for program in programs:
        symbols = subprocess.run([nm, "-u", program], check=True, stdout=subprocess.PIPE, text=True).stdout
        called.update(re.findall(r"\bU (dist_\w+)", symbols))
    excused = exceptions()
    functions = [function for function in header_functions()[0] if (function, "C++") not in excused]
    print(f"C++: {len(functions)} functions, {len(programs)} test programs")
    wrong = [f"no test of dist.hpp calls {function}" for function in functions if function not in called]
    for path in sorted(TESTS.glob("test_hpp*.cpp")):
        for function in re.findall(r"\b(dist_\w+)\(", path.read_text(encoding="utf-8")):
            if function in functions:
                wrong.append(f"{path.name} calls {function} itself, not through the face")
    return wrong


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "--list" and arguments[1] in LANGUAGES:
        for function in header_functions()[0]:
            files = LANGUAGES[arguments[1]].callers(function)
            print(function, *(path.relative_to(HERE) for path in files))
        return 0
    if arguments and (arguments[0] != "--programs" or len(arguments) < 3):
        print(__doc__, file=sys.stderr)
        return 2
    wrong = check_programs(arguments[1], arguments[2:]) if arguments else check()
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

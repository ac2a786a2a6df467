#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rewrites C and C++ programs that were written for libdist 0.2 for the API of 1.0.

    upgrade.py FILE...          rewrites the files in place, and lists the places that need a decision
    upgrade.py --check FILE...  only lists the files that would change; exits with 1 if there is one

The script

  - removes DIST_EXPERIMENTAL, renames functions, and includes the headers that dist.h and dist.hpp no longer include;
  - moves the fields of dist_strategy_options that are now in dist_cpu_options, dist_host_options, dist_mesh_options and
    dist_worker_options, for options that a function declares or has as a parameter that is no pointer;
  - makes a dist_request of each dist_work, in files that submit requests or items and start no asynchronous collectives;
  - gives merge functions the parameter kwargs, and dist_merge_call() a NULL for it;
  - gives the functions of dist_update() the parameters of those of dist_update_values(), which is now dist_update() too;
  - passes out_work of dist_collective_options and out_norm of dist_apply_options as the last argument of the calls;
  - replaces the timeout 0 of dist_work_wait(), dist_work_wait_any() and dist_coordinator_join() by DIST_NO_TIMEOUT;
  - moves user_data to the last place in allocators and log functions, adds the strategy as the first parameter of
    callbacks that create or update values and datasets, and the dataset as that of callbacks that reduce one, and makes
    the count of elements of operators an int64_t.

It works on names, not on meaning: compile the result. In C++, variables that hold constants of an enum need its type
now instead of int32_t. upgrade.tsv lists every function of 0.2 with its name in 1.0, its header and what has changed. What
the script cannot decide is reported: loops that end with DIST_OUT_OF_RANGE, moved fields that are set through a pointer,
options and functions that are gone, works in files that have both requests and asynchronous collectives, and strategies
that are shut down, which have to be destroyed afterwards.
"""
import argparse
import csv
import pathlib
import re
import sys

import api

HERE = pathlib.Path(__file__).resolve().parent
# ---- Names ----
# Functions whose old names are those of enum types now.
NOW_TYPES = {"dist_cross_device_kind", "dist_metric_kind", "dist_strategy_kind", "dist_value_kind"}
# Kinds of cross-device operations that did the same as the default.
SAME_AS_DEFAULT = ("DIST_CROSS_DEVICE_HIERARCHICAL_COPY", "DIST_CROSS_DEVICE_NCCL")
# Options without an effect, their getters, and what TensorFlow's timeout needed.
GONE = re.compile(
    r"\b(dist_variable_trainable|dist_cross_device_num_packs|dist_communication_options_describe"
    r"|dist_topology_(?:from_)?serialized|DIST_COMMUNICATION_(?:AUTO|RING|NCCL)|DIST_ENUM_COMMUNICATION"
    r"|(?<=[.>])(?:trainable|num_packs|implementation|has_timeout))\b"
)
WORD = re.compile(r"\bdist_\w+|\bDIST_\w+|\bdist::\w+")
MACRO = re.compile(r"^[ \t]*#[ \t]*(define|undef)[ \t]+DIST_EXPERIMENTAL\b[^\n]*\n", re.MULTILINE)
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*([<\"])(?:\.\./)*([^>\"]+)[>\"][^\n]*\n", re.MULTILINE)
# ---- Requests ----
REQUESTS = re.compile(r"\bdist_(submit|batcher_submit|completions_next|done_fn|work_take|work_user_data)\b")
COLLECTIVES = re.compile(r"\bout_work = |\bdist_work_(start|ready)\b")
# ---- Options by subject ----
PART_OF_FIELD = {
    field: part
    for part, fields in {
        "cpu": "placement cpus num_cpus stack_size_bytes budget move_host_threads",
        "host": "allocator log log_user_data clock clock_user_data executor helper_threads recorded_events late_destroys",
        "mesh": "device_assignment axes num_axes use_spmd_partitioning",
        "worker": "cluster_resolver network replicas_of_workers num_workers transport staging_bytes reform",
    }.items()
    for field in fields.split()
}
FIELDS = "|".join(PART_OF_FIELD)
OPTIONS = re.compile(
    r"^(?P<indent>[ \t]*)(?P<static>static )?(?:const )?dist_strategy_options (?P<name>\w+)(?P<value> = [^;]*)?;[ \t]*\n"
    r"|\bdist_strategy_options (?P<parameter>\w+)(?=[,)])",
    re.MULTILINE,
)
DEFAULTS = re.compile(r"(= (\(dist_strategy_options\))?DIST_STRATEGY_OPTIONS_INIT|= \{\})?")
# ---- Waits: the functions, and which parameter is the timeout ----
TIMEOUTS = {"dist_work_wait": 1, "dist_work_wait_any": 2, "dist_request_wait": 1, "dist_request_wait_any": 2, "dist_coordinator_join": 1}
# ---- Outputs: how many arguments the functions had, and the assignments ----
OUTPUTS = {"dist_all_reduce": 6, "dist_reduce_to_root": 7, "dist_reduce_scatter": 6, "dist_all_gather": 5,
           "dist_gather_to_root": 6, "dist_broadcast": 6, "dist_scatter_from_root": 6, "dist_all_to_all": 5,
           "dist_scan": 7, "dist_permute": 7, "dist_barrier": 2, "dist_reduce_apply": 7}
OUTPUT_CALL = re.compile(rf"\b({'|'.join(OUTPUTS)})\(")
ASSIGNED = re.compile(r"(?:if \(([^;{}\n]*)\) )?\b(\w+)\.out_(?:work|norm) = ([^,;]+)(?:;[ \t]*\n?|, )")
FUNCTION = re.compile(r"^}[^\n]*\n", re.MULTILINE)
# ---- user_data last ----
SIZE = r"(?:std::)?size_t ?\w*"
ALLOC = re.compile(rf"\(void ?\* ?(\w*), ({SIZE}), ({SIZE})\)(?! const)")
FREE = re.compile(rf"\(void ?\* ?(\w*), void ?\* ?(\w*), ({SIZE}), ({SIZE})\)")
MERGE = re.compile(rf"(\(dist_strategy ?\* ?\w*, dist_value ?\* ?\w*), (dist_value ?\*\* ?\w*,\s*void ?\* ?\w*\))")
OPERATOR = re.compile(r"(?:std::)?size_t ?(\w*), dist_dtype\b")
LOG = re.compile(r"\(void ?\* ?(\w*), int32_t( ?\w*), (const char ?\* ?\w*)\)")
# ---- Callbacks with a strategy: what follows their opening bracket in 0.2 ----
DATA = r"void ?\* ?\w*\)"
CALLBACK = re.compile(
    r"\((?=(?:"
    rf"(?:(?:std::)?size_t ?\w*, const char ?\* ?\w*, )?int64_t ?\w*, dist_value ?\*\* ?\w*,\s*{DATA}"  # sources
    rf"|const dist_input_context ?\* ?\w*,\s*dist_dataset ?\*\* ?\w*,\s*{DATA}"
    rf"|(?:const dist_value_context ?\* ?\w*,\s*)?dist_value ?\*\* ?\w*,\s*{DATA}"
    rf"|dist_tensor ?\* ?\w*, dist_value ?\* ?\w*,\s*{DATA}"
    r"|const dist_update_place ?\* ?\w*,\s*dist_value ?\* ?\w*,\s*dist_value ?\* ?\w*,\s*dist_value ?\*\* ?\w*,"
    rf"\s*{DATA}))"
)
UPDATE = re.compile(
    r"\((dist_strategy ?\* ?\w*), dist_tensor ?\* ?(\w*), (dist_value ?\* ?\w*),(\s*void ?\* ?\w*)\)((?: -> dist_status)? \{)?"
)
FOLD = re.compile(rf"\((?=dist_value ?\* ?\w*, dist_value ?\* ?\w*,\s*dist_value ?\*\* ?\w*,\s*{DATA})")
ALLOCATOR = re.compile(r"(\(?dist_allocator\)?(?: \w+ =)? ?)\{([^,{}]+), ([^,{}]+), ([^,{}]+)\}")


def renames():
    """Returns the functions and constants whose names have changed."""
    with open(HERE / "upgrade.tsv", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["1.0"] not in ("", row["0.2"])]
    return {row["0.2"]: row["1.0"] for row in rows} | dict.fromkeys(SAME_AS_DEFAULT, "DIST_CROSS_DEVICE_DEFAULT")


def headers_of_names():
    """Returns the header of each name that neither dist.h nor dist.hpp declares."""
    found, included = {}, api.names(api.parse(api.HEADERS[:1]))
    for kind, declared in api.parse(api.HEADERS).items():
        for one in declared:
            names = [each["name"] for each in one["constants"]] if kind == "enums" else [one["name"]]
            found |= {name: one["file"] for name in names if name not in included}
    declares = re.compile(r"^(?:class(?: \[\[nodiscard\]\])?|struct|inline [\w:]+) (\w+)", re.MULTILINE)
    for path in [api.INCLUDE_DIST / "tf.hpp", *(api.INCLUDE_DIST / "experimental").glob("*.hpp")]:
        for name in declares.findall(path.read_text(encoding="utf-8")):
            found["dist::" + name] = str(path.relative_to(api.INCLUDE_DIST))
    return found


def with_requests(text):
    if REQUESTS.search(text) and not COLLECTIVES.search(text):
        text = re.sub(r"\bdist_work\b(?!\.)", "dist_request", re.sub(r"\bdist_work_", "dist_request_", text))
    return re.sub(r"\bdist_work_(take|user_data)\b", r"dist_request_\1", text)


def closing(text, at):
    """Returns the position of the bracket that closes the one before `at`."""
    depth = 0
    while at < len(text):
        if text[at] == '"':
            at = re.compile(r'"(?:\\.|[^"\\])*"?').match(text, at).end()
            continue
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth < 0:
            return at
        at += 1
    return at


def arguments(text, at):
    """Yields the places (begin, end) of the arguments of a call; `at` is behind its bracket."""
    end = closing(text, at)
    begin = at
    while at < end:
        if text[at] == ",":
            yield begin, at
            begin = at + 1
        at = closing(text, at + 1) + 1 if text[at] in "([{" else at + 1
    yield begin, end


def with_no_timeout(text):
    for name, index in TIMEOUTS.items():
        for match in reversed(list(re.finditer(rf"\b{name}\(", text))):
            places = list(arguments(text, match.end()))
            if len(places) > index and text[slice(*places[index])].strip() == "0":
                begin, end = places[index]
                text = text[:begin] + " DIST_NO_TIMEOUT" + text[end:]
    return text


def with_outputs(text, cxx):
    """Makes outputs the last argument of calls: the value that the function has given the options before, else NULL."""
    null, edits, begin = "nullptr" if cxx else "NULL", {}, 0
    for end in [*(match.end() for match in FUNCTION.finditer(text)), len(text)]:
        given = list(ASSIGNED.finditer(text, begin, end))
        for call in OUTPUT_CALL.finditer(text, begin, end):
            places = list(arguments(text, call.end()))
            if len(places) != OUTPUTS[call[1]]:
                continue
            texts, value = [text[slice(*place)].strip() for place in places[-2:]], null
            for one in given:
                if one.end() <= call.start() and f"&{one[2]}" in texts:
                    value = f"{one[1]} ? {one[3]} : {null}" if one[1] else one[3]
                    edits[one.span()] = ""
            edits[places[-1][1], places[-1][1]] = f", {value}"
        begin = end
    for (begin, end), new in sorted(edits.items(), reverse=True):
        before = text[:begin]
        if not new and text[begin:end].endswith("\n"):  # a line of its own, or the end of a list of assignments
            before = before.rstrip(" \t")
            new = "" if before.endswith("\n") else ";\n"
            before = before.removesuffix(",")
        text = before + new + text[end:]
    return text


def with_named_arguments(text, cxx):
    """Gives merge functions, and the calls that pass them, the parameter kwargs."""
    text = MERGE.sub(r"\1, dist_value *, \2" if cxx else r"\1, dist_value *kwargs, \2", text)
    for call in reversed(list(re.finditer(r"\bdist_merge_call\(", text))):
        places = list(arguments(text, call.end()))
        if len(places) == 6:
            at = places[3][1]
            text = f"{text[:at]}, {'nullptr' if cxx else 'NULL'}{text[at:]}"
    return text


def with_places(text, cxx):
    """Gives update functions the copy's place, named arguments and a result, and dist_update() NULL for what is new."""

    def parameters(match):
        strategy, copy, args, data, body = match.groups(default="")
        place, kwargs, result = ("place" if copy else "", "", "") if cxx else ("place", "kwargs", "out_result")
        head = f"({strategy}, const dist_update_place *{place}, {args}, dist_value *{kwargs}, dist_value **{result},{data})"
        return head + body + (f"\n  dist_tensor *{copy} = place->copy;" if copy and body else "")

    text = UPDATE.sub(parameters, text)
    for call in reversed(list(re.finditer(r"\bdist_update\(", text))):
        places = list(arguments(text, call.end()))
        if len(places) == 5:
            at = places[4][1]
            text = text[:at] + (", nullptr" if cxx else ", NULL") * 3 + text[at:]
    return text


def with_parts(text, cxx):
    """Moves the fields of strategy options into the structs of their subjects."""
    at = 0
    while match := OPTIONS.search(text, at):
        at = match.end()
        name = match["name"] or match["parameter"]
        begin = match.end()
        if match["parameter"]:
            begin = text.find("{", at) + 1
            if begin == 0 or 0 <= text.find(";", at) < begin:
                continue  # a declaration
            begin = text.index("\n", begin) + 1
        end = closing(text, begin)
        scope = text[begin:end]
        use = re.compile(rf"(?<![\w.>]){name}\.({FIELDS})\b")
        parts = list(dict.fromkeys(PART_OF_FIELD[field] for field in use.findall(scope)))
        if not parts:
            continue
        taken = {part: re.search(rf"(?<![\w.>]){part}\b(?!\()", text[max(0, begin - 500) : end]) for part in parts}
        names = {part: f"{name}_{part}" if taken[part] else part for part in parts}
        lives_on = match["static"] or re.search(rf"\breturn {name};", scope)
        is_default = match["name"] and DEFAULTS.fullmatch((match["value"] or "").strip())
        lines = []
        for part in parts:
            kind, initial = f"dist_{part}_options", f"DIST_{part.upper()}_OPTIONS_INIT"
            if lives_on:
                lines += [f"static {kind} {names[part]};", f"{names[part]} = {'' if cxx else f'({kind})'}{initial};"]
            else:
                lines.append(f"{kind} {names[part]} = {initial};")
            if not is_default:
                lines.append(f"if ({name}.{part} != {'nullptr' if cxx else 'NULL'}) {names[part]} = *{name}.{part};")
            lines.append(f"{name}.{part} = &{names[part]};")
        indent = match["indent"] if match["name"] else "  "
        scope = use.sub(lambda field, to=names: f"{to[PART_OF_FIELD[field[1]]]}.{field[1]}", scope)
        text = text[:begin] + "".join(f"{indent}{line}\n" for line in lines) + scope + text[end:]
        at = begin
    return text


def with_strategies(text, cxx):
    def parameter(match):
        body = text[match.end() : closing(text, text.find("{", match.end()) + 1)]
        name = "owner" if re.search(r"\*(?:const )?strategy\b", body) else "strategy"
        return "(dist_strategy *, " if cxx else f"(dist_strategy *{name}, "

    return FOLD.sub("(dist_dataset *, " if cxx else "(dist_dataset *dataset, ", CALLBACK.sub(parameter, text))


def with_headers(text, homes, cxx):
    wanted = {homes[name] for name in WORD.findall(text) if name in homes}
    if cxx and "dist.hpp" in text:
        wanted = {name if name == "experimental/links.h" else name.removesuffix("pp") + "pp" for name in wanted}
    includes = list(INCLUDE.finditer(text))
    present = {match[2].removeprefix("include/").removeprefix("dist/") for match in includes}
    missing = [name for name in sorted(wanted) if not {name, name + "pp"} & (present | wanted - {name})]
    if not missing or not includes:
        return text
    mine = [one for one in includes if one[2].startswith("dist/")]
    at, quotes = (mine or includes)[-1].end(), '""' if mine and mine[-1][1] == '"' else "<>"
    lines = [f"#include {quotes[0]}dist/{name}{quotes[1]}\n" for name in missing]
    return text[:at] + "".join(lines) + text[at:]


def renamed(word, changed):
    if word[0] in NOW_TYPES and not word.string.startswith("(", word.end()):
        return word[0]
    return changed.get(word[0], word[0])


def upgraded(text, changed, homes, cxx):
    text = MACRO.sub("", text)
    text = WORD.sub(lambda match: renamed(match, changed), text)
    text = with_requests(text)
    text = LOG.sub(r"(dist_log_level\2, \3, void *\1)", text)
    text = OPERATOR.sub(r"int64_t \1, dist_dtype", text)
    text, allocators = ALLOC.subn(r"(\2, \3, void *\1)", text)
    if allocators:
        text = ALLOCATOR.sub(r"\1{\3, \4, \2}", FREE.sub(r"(void *\2, \3, \4, void *\1)", text))
    text = with_named_arguments(with_outputs(with_no_timeout(text), cxx), cxx)
    return with_headers(with_parts(with_places(with_strategies(text, cxx), cxx), cxx), homes, cxx)


def undecided(text):
    """Returns the lines that need a decision, and the decision that each needs."""
    pointers = "|".join(re.findall(r"\bdist_strategy_options \*(\w+)", text))
    moved = re.compile(rf"\b(?:{pointers})->({FIELDS})\b" if pointers else r"(?!)")
    both = REQUESTS.search(text) and COLLECTIVES.search(text)
    for number, line in enumerate(text.splitlines(), 1):
        if "dist_iterator_next" in text and "OUT_OF_RANGE" in line:
            yield number, "dist_iterator_next() stores NULL at the end of a pass; check this line"
        if field := moved.search(line):
            yield number, f"{field[1]} is now in dist_{PART_OF_FIELD[field[1]]}_options; set it there"
        if re.search(r"[.>]out_(work|norm) = ", line):
            yield number, "this is the last argument of the call now"
        if gone := GONE.search(line):
            yield number, f"{gone[1]} is gone: it had no effect, or only TensorFlow has it"
        if "dist_strategy_shutdown(" in line:
            yield number, "dist_strategy_shutdown() leaves the strategy to dist_strategy_destroy()"
        if both and re.search(r"\bdist_work(_|\b)", line):
            yield number, "this file has requests and collectives; if this is a request, make it a dist_request"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", nargs="+", type=pathlib.Path)
    options.add_argument("--check", action="store_true")
    given = options.parse_args()
    changed, homes, changes = renames(), headers_of_names(), 0
    for path in given.files:
        old = path.read_text(encoding="utf-8")
        new = upgraded(old, changed, homes, path.suffix not in (".c", ".h"))
        changes += new != old
        if new != old and given.check:
            print(f"{path}: would change")
        elif new != old:
            path.write_text(new, encoding="utf-8")
        for number, why in undecided(new):
            print(f"{path}:{number}: {why}")
    return 1 if given.check and changes else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""The option structs of the C headers, as records that each language generates in its own form.

    options.py            writes what is committed: see written()
    options.py --check    compares only; exit status 1 if a file is stale
    options.py --list     prints all records

A record has one option for each field, except for struct_size, reserved fields, the length of a list and the user data
of a callback, which belong to the option before them. Languages offer no allocators. The kind of an option follows from
its C type, its name and its comment:

    flag      int32_t whose comment says "1 = ..."         enum      an enum of the headers
    int       another int32_t                              handle    a pointer to an opaque struct
    long      int64_t, uint64_t, size_t                    record    a pointer to another struct
    real      double                                       function  a callback and its user data
    duration  int64_t, named NAME_ns                       int32s, longs, reals, texts    a list
    text      const char *                                 hand      anything else

SWIG's part is in swig(); options_go.py, options_java.py and options_python.py have those of the languages.
"""
import pathlib
import re
import sys
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "capi"))
import api  # noqa: E402  the one parser of the headers
from enums_table import Error  # noqa: E402

# They only have an allocator, or belong to modules that move bytes, which are written in C.
LEFT_OUT = ("dist_cluster_spec_options", "dist_topology_options", "dist_link_module_options", "dist_link_options")
# Records that are arguments of one function for SWIG, because an object would cost more than the call: the function.
CALLS = {"dist_submit_options": "dist_submit", "dist_item_options": "dist_batcher_submit"}
# The structs that dist_strategy_options points to are a part of it in the languages: the field that points to each.
PARTS = {"cpu": "dist_cpu_options", "host": "dist_host_options", "mesh": "dist_mesh_options", "worker": "dist_worker_options"}
# The functions of dist_callbacks.i that call a language's function, by the type of the callback.
THUNKS = {
    "dist_apply_fn": "on_apply",
    "dist_initial_fn": "on_initial",
    "dist_log_fn": "on_log",
    "dist_partition_fn": "on_partition",
    "dist_reduce_fn": "on_reduce",
}
# Options that languages do not offer: completions serve them in place of `done`, on a thread of their own.
NOT_OFFERED = {"dist_strategy_options": ("clock",), "dist_submit_options": ("done",), "dist_item_options": ("done",)}
# Options whose setters are written by hand in dist_options.i and the files that it includes.
HAND = {
    "dist_apply_options": ("states",),
    "dist_batcher_options": ("free_state", "free_result"),
    "dist_checkpoint_options": ("metadata_keys", "metadata_texts"),
    "dist_cluster_resolver_options": ("task_type", "rpc_layer"),
    "dist_cross_device_options": ("functions",),
    "dist_devices_options": ("results",),
    "dist_instances_options": ("create_state", "destroy_state", "warm_up"),
    "dist_preemption_options": ("variables",),
    "dist_slurm_options": ("jobs",),
    "dist_strategy_options": ("functions", "axes", "executor"),
}
INTEGERS = {"size_t": "int64_t"}  # as languages give them
LISTS = {"int32_t": "int32s", "int64_t": "longs", "double": "reals"}


@dataclass
class Option:
    """One option of a record."""

    record: str
    name: str  # the field's
    kind: str
    type: str  # the C type without const and stars
    comment: str
    const: bool = False
    part: str | None = None  # of PARTS
    belongs: list = field(default_factory=list)  # fields that are set with it: a length, user data

    @property
    def short(self):
        """The name without what its type says: timeout, initial."""
        return re.sub(r"_(ns|fn)$", "", self.name) if self.kind in ("duration", "function") else self.name

    @property
    def by_hand(self):
        return self.kind in ("hand", "left out") or self.name in HAND.get(self.record, ())

    @property
    def setter(self):
        """The function that sets it, of SWIG's class; None: SWIG's own for a field."""
        if self.kind in ("function", "int32s", "longs", "reals", "texts"):
            return "set_" + {"fn": "function"}.get(self.short, self.short)
        return None


@dataclass
class Record:
    name: str
    comment: str
    options: list
    experimental: bool


def kind_of(declared, found):
    """The kind of a field."""
    name, kind, stars = declared["name"], declared["type"], declared["pointers"]
    comment = (declared["comment"] or {"text": ""})["text"]
    if "function" in declared or declared.get("size"):
        return "hand"
    if stars == 2 and kind == "char":
        return "texts"
    if stars == 1 and kind == "char":
        return "text"
    if stars == 1 and kind in LISTS:
        return LISTS[kind]
    if stars == 1 and kind in found["handles"]:
        return "handle"
    if stars == 1 and kind in found["structs"]:
        return "record"
    if stars:
        return "hand"
    if kind in found["enums"]:
        return "enum"
    if kind in found["callbacks"]:
        return "function"
    if kind == "int64_t" and name.endswith("_ns"):
        return "duration"
    if kind == "int32_t":
        return "flag" if re.search(r"(^|[:;,.] |only: )1 = ", comment) and "-1 = " not in comment else "int"
    return {"int64_t": "long", "uint64_t": "long", "size_t": "long", "double": "real"}.get(kind, "hand")


def options_of(struct, found, part=None):
    """The options of a struct; those of the structs of PARTS in the place of the field that points to one."""
    record = "dist_strategy_options" if part else struct["name"]
    all_options = []
    for declared in struct["fields"]:
        name, stars = declared["name"], declared["pointers"]
        comment = " ".join((declared["comment"] or {"text": ""})["text"].split())
        before = all_options[-1] if all_options else None
        if name in ("struct_size", "reserved") or declared["type"] == "dist_allocator":
            continue
        if struct["name"] == "dist_strategy_options" and name in PARTS:
            all_options += options_of(found["structs"][PARTS[name]], found, name)
            continue
        if declared["type"] == "void" and name.endswith("user_data"):
            before.belongs.append(name)
            continue
        if declared["type"] == "size_t" and re.match(r"num_|ndim$", name) and before and before.kind not in ("long", "int"):
            before.belongs.append(name)
            continue
        kind = kind_of(declared, found)
        option = Option(record, name, kind, declared["type"], comment, declared["const"], part)
        all_options.append(option)
        if name in NOT_OFFERED.get(record, ()):
            option.kind = "left out"
            continue
        if kind == "function" and option.type not in THUNKS and not option.by_hand:
            raise Error(f"{record}.{name}: dist_callbacks.i needs a function for {option.type}, and THUNKS its name")
        if kind == "hand" and name not in HAND.get(record, ()):
            raise Error(f"{record}.{name}: no rule for the type {'const ' * declared['const']}{option.type} {'*' * stars}")
    return all_options


def records(description=None):
    """All records, by name, in the order of the headers."""
    declared = description or api.parse(api.HEADERS)
    found = {
        "structs": {one["name"]: one for one in declared["structs"]},
        "handles": {one["name"] for one in declared["handles"]},
        "callbacks": {one["name"] for one in declared["callbacks"]},
        "enums": {one["name"] for one in declared["enums"] if one["name"]},
    }
    result = {}
    for struct in declared["structs"]:
        name = struct["name"]
        if name in LEFT_OUT or name in PARTS.values() or not name.endswith("_options"):
            continue
        comment = (struct["comment"] or {"text": ""})["text"]
        result[name] = Record(name, comment, options_of(struct, found), struct["experimental"])
    return result


# ---- SWIG ----


def swig_setter(option):
    """The method of SWIG's class that sets an option of several fields."""
    part = f"dist_swig::parts($self)->{option.part}_part." if option.part else "$self->"
    if option.kind == "function":
        return (
            f"  void {option.setter}(int64_t token) {{\n"
            f"    {part}{option.name} = dist_swig::{THUNKS[option.type]};\n"
            f"    {part}{option.belongs[0]} = dist_swig::pointer(token);\n"
            "  }\n"
        )
    values = {"int32s": "const int32_t *numbers", "longs": "const long long *numbers", "reals": "const double *numbers",
              "texts": "const char *const *texts"}[option.kind]
    kept = f"dist_swig::keep($self, {values.rpartition('*')[2]}, n)"
    if not option.belongs:  # C reads as many as the call needs
        return f"  void {option.setter}({values}, size_t n) {{ {part}{option.name} = n ? {kept} : nullptr; }}\n"
    return (
        f"  void {option.setter}({values}, size_t n) {{\n"
        f"    {part}{option.name} = {kept};\n"
        f"    {part}{option.belongs[0]} = n;\n"
        "  }\n"
    )


def swig_record(record):
    """What SWIG does with a record."""
    ignored = [name for option in record.options for name in (option.name, *option.belongs)
               if option.part is None and (option.by_hand or option.setter)]
    lines = [f"%ignore {record.name}::{name};\n" for name in ignored]
    if record.name != "dist_strategy_options":
        lines.insert(0, f"%dist_options({record.name})\n")
    else:
        for one in record.options:
            if one.part and not (one.by_hand or one.setter):
                of = f"{'const ' * one.const}{one.type} *" if one.kind == "handle" else INTEGERS.get(one.type, one.type)
                lines.append(f"%dist_part({one.part}_part, {of}, {one.name})\n")
    setters = [swig_setter(one) for one in record.options if one.setter and not one.by_hand]
    if setters:
        lines.append(f"%extend {record.name} {{\n{''.join(setters)}}};\n")
    return "".join(lines)


def swig_call(record, function):
    """A function in place of one that takes the record. Its last parameters are the options."""
    short = function.removeprefix("dist_")
    own = {"dist_submit": ("dist_strategy *strategy, dist_replica_fn fn, void *user_data", "strategy, fn, user_data"),
           "dist_batcher_submit": ("dist_batcher *batcher, int64_t token", "batcher, dist_swig::pointer(token)")}[function]
    offered = [one for one in record.options if not one.by_hand]
    parameters = "".join(
        f",\n    {INTEGERS.get(one.type, one.type)} {'*' if one.kind == 'handle' else ''}{one.name}" for one in offered)
    sets = "".join(f"  options.{one.name} = {one.name};\n" for one in offered)
    return f"""%ignore {function};
%ignore {record.name};
%ignore {record.name}_init;
%inline %{{
/** {function}() with its options; the token is dist_request_user_data(). */
static dist_status {short}(
    {own[0]}{parameters},
    dist_request **out_request) {{
  {record.name} options = {record.name.upper()}_INIT;
{sets}  return {function}({own[1]}, &options, out_request);
}}
%}}
"""


def swig(all_records):
    """dist_option_fields.i."""
    parts = [swig_call(one, CALLS[one.name]) if one.name in CALLS else swig_record(one) for one in all_records.values()]
    return ("/* SPDX-License-Identifier: Apache-2.0 */\n"
            "/* Written by bindings/options.py from the headers: do not edit. The fields of options. */\n\n" + "\n".join(parts))


# ---- Text ----


class Names:
    """The names of C in a language: those of dist_names.i and dist_enum_names.i, and of the records' options."""

    COLUMNS = {"go": 1, "java": 2, "python": 3}

    def __init__(self, language):
        self.table = {}
        for path in ("dist_enum_names.i", "dist_names.i"):
            for line in (HERE / path).read_text("utf-8").split('R"(')[1].split(')"')[0].splitlines():
                row = line.split(" | ")
                if len(row) == 4:
                    self.table[row[0]] = row[self.COLUMNS[language]]

    def of(self, name):
        """The language's name of a function or a constant."""
        found = self.table.get(name, "-")
        if found == "-":
            raise Error(f"dist_names.i has no name of {name} in this language: the comment needs other words there")
        return found


def meaning(option, translate, words):
    """What an option means, in the words of a language.

    `translate` gives the language's name of a function, a constant or a field ("timeout_ns", "dist_item_options.bytes"),
    and `words` those of "NULL", "1" and "0" of a flag, "0" of a duration, and "DIST_NO_TIMEOUT".
    """
    text = re.sub(r"(^|[;,.] )([rR]etained|[cC]opied)( until [^;.]*)?(?=[;.,]|$)", "", option.comment)
    text = re.sub(r" in (ns|nanoseconds)\b|, in (ns|nanoseconds)\b", "", text)
    if option.kind == "flag":
        text = re.sub(r"\b1 = ", f"{words['1']} = ", re.sub(r"\b0 = ", f"{words['0']} = ", text))
    if option.kind == "duration":
        text = re.sub(r"\b0 = ", f"{words['0s']} = ", text)
    text = re.sub(r"\bNULL\b|\bDIST_NO_TIMEOUT\b", lambda word: words[word[0]], text)
    text = re.sub(r"\bdist_\w+\(\)|\bdist_\w+_options\.\w+|\bDIST_[A-Z0-9_]+\b|`?\b[a-z]+_[a-z_]+\b`?",
                  lambda word: translate(word[0].strip("`").removesuffix("()")), text)
    return re.sub(r"[;,]$|(?<!\.)\.$", "", text.strip()).lstrip(";. ")


# ---- Files ----


def written():
    """Path below bindings -> text."""
    import options_go  # which need this module
    import options_java
    import options_python

    all_records = records()
    files = {"dist_option_fields.i": swig(all_records)}
    for language in (options_go, options_java, options_python):
        files |= language.files(all_records)
    return files


def main(arguments):
    if arguments not in ([], ["--check"], ["--list"]):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        if arguments == ["--list"]:
            for record in records().values():
                print(record.name)
                for one in record.options:
                    print(f"    {one.name}: {one.kind}{' by hand' * one.by_hand}; {meaning(one, lambda name: name, WORDS)}")
            return 0
        files = written()
    except Error as error:
        print(error)
        return 1
    stale = [name for name, text in files.items()
             if not (HERE / name).is_file() or (HERE / name).read_text("utf-8") != text]
    for name in stale:
        if arguments:
            print(f"bindings/{name} is not what the headers give: run bindings/options.py")
        else:
            (HERE / name).write_text(files[name], "utf-8")
    return 1 if arguments and stale else 0


WORDS = {"NULL": "nil", "1": "true", "0": "false", "0s": "0", "DIST_NO_TIMEOUT": "NoTimeout"}

if __name__ == "__main__":
    import options  # this module by the name that those of the languages use

    sys.exit(options.main(sys.argv[1:]))

# SPDX-License-Identifier: Apache-2.0
"""The option records of options.py as Java's classes XOptions, each immutable with one method per option.

The names of classes and options are those that messages have (dist_names.i), and options_java_table.py has what else
does not follow from the headers. An option whose kind has a rule needs no line there.
"""
import html
import re
import textwrap
from dataclasses import dataclass, replace

import enums_table
from options import CALLS, PARTS, Error, Names, api, meaning
from options_java_table import ARGUMENTS, CALLBACKS, TABLE, Class, Option

FOLDER = "java/src/main/java/org/libdist"
WIDTH = 110
IMPORTS = {
    "Duration": "java.time", "Executor": "java.util.concurrent", "Consumer": "java.util.function",
    "Path": "java.nio.file", "TreeMap": "java.util",
    **dict.fromkeys(("DistModule", "DistModuleConstants", "dist_position"), "org.libdist.internal"),
    **dict.fromkeys(("List", "Map", "Objects", "Optional", "OptionalInt"), "java.util"),
}


# ---- Names ----


def camel(name):
    """clip_norm as Java writes it."""
    return re.sub(r"_(.)", lambda letter: letter[1].upper(), name)


def type_of(name):
    """A struct's class: those of options have the names of messages."""
    return NAMES.table.get(name) or camel("_" + name.removeprefix("dist_"))


def java_name(option):
    """An option's name, which is that in messages."""
    row = table(option.record).options.get(option.name)
    named = NAMES.table.get(option.name, NAMES.table.get(option.short, "-"))
    return (row and row.name) or (camel(option.short) if named == "-" else named)


def table(record):
    return TABLE.get(record, Class())


NAMES = Names("java")
JAVA_ENUMS = {row.first: row.java for row in enums_table.TABLE}
DECLARED = api.parse(api.HEADERS)["enums"]
ENUMS = {one["name"]: JAVA_ENUMS[one["constants"][0]["name"]] for one in DECLARED if one["name"]}
CONSTANTS = {constant["name"] for one in DECLARED for constant in one["constants"]}


# ---- Text ----

WORDS = {"NULL": "null", "1": "true", "0": "false", "0s": "zero", "DIST_NO_TIMEOUT": "a negative value"}
NOT_VERBS = ("of", "in", "that", "on", "for", "which", "with", "over", "from", "to", "between")


def linked(name, record, all_records):
    """What Javadoc has for a name of C."""
    owner, _, one = name.rpartition(".")
    owner = "dist_strategy_options" if owner in PARTS.values() else owner
    names = {each.name: each for each in all_records[owner or record].options}
    if one in names:
        return f"{{@link {type_of(owner) if owner else ''}#{java_name(names[one])}}}"
    if name in CALLBACKS:
        return f"{{@link {CALLBACKS[name][0].removesuffix('<?>')}}}"
    if name.startswith("dist_") or name in CONSTANTS:
        return "{@link " + re.sub(r"\.", "#", NAMES.of(name)) + "}"
    return "{@link " + NAMES.of(f"dist_{name}").replace(".", "#") + "}" if f"dist_{name}" in NAMES.table else name


def sentence(option, all_records):
    """An option's comment as a sentence of Javadoc."""
    comment, end = option.comment, ""
    if option.kind == "enum":
        found = re.search(r"(?:^|[;,.] ?)0 = (DIST_\w+)", comment)
        if found:
            comment = comment.replace(found[0], "") or option.name.replace("_", " ")
            end = f" The default is {linked(found[1], option.record, all_records)}."
    text = meaning(replace(option, comment=comment), lambda name: linked(name, option.record, all_records), WORDS)
    text = re.sub(r"[;,] may be null\b|; copied\b", "", text.replace("< 0 ", "a negative value "))
    text = re.sub(r"\b(true|false) = ", r"if \1, ", text).replace(". if ", ". If ")
    if option.kind in LISTS or option.kind == "texts":  # which are never null
        text = re.sub(r"\bnull = ", "by default, ", text)
    text = re.sub(r" = (?=no\b|none|not\b|never|off\b|on\b)", " means ", text)
    text = re.sub(r"(zero|null|\b\d+|\"\"|value) = (default|defaults)\b", r"\1 selects the \2", text)
    text = re.sub(r"(zero|null|\b\d+|\"\"|value) = ", r"\1 selects ", text)
    text = text.replace(", a negative value means", ", and a negative value means")
    text = text.replace(". null ", "; null ").replace(". by default", "; by default")
    text = re.sub(r"`([^`]+)`", r"{@code \1}", text)
    prefix = re.match(r"([A-Z_]{3,}|\{@link [\w#]+\})( only)?: ", text)
    start, text = (prefix[0], text[prefix.end():]) if prefix else ("", text)
    words = text.split() + [""]
    if option.type == "dist_cancel":
        text = f"sets an object that {text}"
    elif words[0] == "if" or re.fullmatch(r"[a-z]+s", words[0]) and words[1] not in NOT_VERBS:
        pass
    elif words[0] in ("how", "whether", "when", "which", "a", "an", "the", "one"):
        text = f"sets {text}"
    else:
        text = f"sets the {text}"
    text = start + text
    return text[0].upper() + text[1:] + "." * (not text.endswith(".")) + end


def javadoc(text, indent=""):
    """A comment; an empty line of the text begins a paragraph."""
    parts = [html.escape(part, quote=False) for part in text.split("\n\n")]
    room = WIDTH - len(indent) - 3
    if len(parts) == 1 and len(parts[0]) <= room - 4:
        return f"{indent}/** {parts[0]} */\n"
    lines = []
    for part in parts:
        text = f"<p>{part}" if lines else part
        lines += ["", *textwrap.wrap(text, room, break_on_hyphens=False, break_long_words=False)]
    return f"{indent}/**\n" + "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines[1:]) + f"{indent} */\n"


# ---- Classes ----


@dataclass
class Member:
    """An option as Java has it: a field, a method that sets it, and a statement that passes it on."""

    name: str = ""
    field: str = ""  # its name; "": none
    type: str = ""  # the field's
    parameters: str = ""  # "": no method
    value: str = ""
    also: str = ""
    doc: str = ""
    set: str = ""
    note: str = ""  # what the field's comment says
    quick: bool = False
    passed: str = ""  # as an argument of CALLS


LISTS = {"int32s": "int", "longs": "long", "reals": "double"}


def setter(name):
    return f"set{name[0].upper()}{name[1:]}"


def passed_if(condition, statement):
    return f"if ({condition}) {{\n{statement}\n}}"


def by_kind(option, name, takes_null):
    """The field's name, its type, the parameter, the field's value, and the statement that passes it on."""
    kind, to = option.kind, f"options.{option.setter or setter(option.name)}"
    given = name if takes_null else f'Objects.requireNonNull({name}, "{name}")'
    number, there = passed_if(f"{name} != 0", f"{to}({name});"), f"{name} != null"
    if kind == "flag":
        return name, "boolean", f"boolean {name}", name, passed_if(name, f"{to}(1);")
    if kind == "int" and "-1 = " in option.comment and re.search(r"\b1 = ", option.comment):
        return name, "int", f"boolean {name}", f"{name} ? 1 : -1", number
    if kind in ("int", "long", "real"):
        type_ = {"real": "double"}.get(kind, kind)
        return name, type_, f"{type_} {name}", name, number
    if kind == "duration":
        value = f'Durations.nanos({name}, "{name}")'
        return (f"{name}Nanos", "long", f"Duration {name}", f"{name} == null ? 0 : {value}" if takes_null else value,
                passed_if(f"{name}Nanos != 0", f"{to}({name}Nanos);"))
    if kind == "enum":
        return name, "int", f"{ENUMS[option.type]} {name}", f'Objects.requireNonNull({name}, "{name}").code', number
    if kind == "text":
        to = f"options.set_{option.name}" if option.by_hand else to
        value = f"Texts.orNull({name})" if takes_null else f'Texts.bytes({name}, "{name}")'
        return name, "byte[]", f"String {name}", value, passed_if(there, f"{to}({name});")
    if kind == "texts":
        return (name, "byte[][]", f"List<String> {name}", f'Texts.all({name}, "{name}")',
                passed_if(there, f"{to}({name}, {name}.length);"))
    if kind in LISTS:
        value = f'Objects.requireNonNull({name}, "{name}").clone()'
        return (name, f"{LISTS[kind]}[]", f"{LISTS[kind]}... {name}", value,
                passed_if(there, f"{to}({name}, {name}.length);"))
    if kind in ("handle", "record"):
        type_, native = type_of(option.type), f"uses.of({name})" if kind == "handle" else f"{name}.toNative(uses)"
        return name, type_, f"{type_} {name}", given, passed_if(there, f"{to}({native});")
    if kind == "function" and option.type in CALLBACKS:
        type_, target = CALLBACKS[option.type]
        return name, type_, f"{type_} {name}", given, passed_if(there, f"{to}(tokens.add({target.format(name)}));")
    return None


def member(option, record, all_records):
    """A member for an option of C; None if the class has nothing of it."""
    row, docs = table(record.name).options.get(option.name, Option()), table(record.name).docs
    name = java_name(option)
    if option.kind == "left out" or row.left_out:
        return row.set and Member(set=row.set, passed=row.set)
    takes_null = row.null
    if takes_null is None:
        takes_null = {"duration": False, "function": "NULL = " in option.comment}.get(
            option.kind, "may be NULL" not in option.comment)
    own = row.type and row.set is not None
    rule = None if own else by_kind(option, name, takes_null)
    if not own and rule is None:
        raise Error(f"{record.name}.{option.name}: Java has no rule for it, and options_java_table.py has no row")
    value = name if takes_null else f'Objects.requireNonNull({name}, "{name}")'
    place, type_, parameter, value, passed = rule or (name, row.type, f"{row.type} {name}", value, row.set)
    note = f"of {ENUMS[option.type]}" if option.kind == "enum" else ""
    if "-1" in value and type_ == "int":
        note = "1: true, -1: false"
    argument = {"handle": f"uses.ofNullable({place})", "flag": f"{place} ? 1 : 0"}.get(option.kind, place)
    one = Member(name, place, row.type or type_, value=row.value or value, also=row.also, note=note)
    one.set, one.passed = (passed, argument) if row.set is None else (row.set, row.set)
    one.quick = option.name in table(record.name).quick
    if not row.no_method:
        one.parameters, one.doc = row.parameters or parameter, docs.get(option.name) or sentence(option, all_records)
    return one


def members(record, all_records):
    """The members of a record's class, in the order of the header."""
    rows, docs, options = table(record.name).options, table(record.name).docs, {one.name: one for one in record.options}
    result = []
    for name in {*rows, *docs} - {*options, *(name for name, row in rows.items() if row.type)}:
        raise Error(f"options_java_table.py: {record.name} has no {name}")
    for name, row in rows.items():  # options that only Java has
        if name not in options:
            doc, name = docs[name], row.name or name
            result.append(Member(name, name, row.type, row.parameters or f"{row.type} {name}",
                                 row.value or f'Objects.requireNonNull({name}, "{name}")', row.also, doc))
    for option in record.options:
        of = options.get(option.name.removeprefix("has_"))
        if option.name.startswith("has_") and of:  # set with that
            continue
        one = member(option, record, all_records)
        if one is None:
            continue
        if f"has_{option.name}" in options:
            one.type, one.value = "OptionalInt", f"OptionalInt.of({one.name})"
            one.set = passed_if(f"{one.field}.isPresent()", f"options.{setter('has_' + option.name)}(1);\n"
                                f"options.{setter(option.name)}({one.field}.getAsInt());")
        result.append(one)
    return result


def indented(code, depth):
    """Statements with the indentation of their blocks."""
    lines = []
    for line in code.split("\n"):
        depth -= line.startswith("}")
        lines.append(("    " * depth + line).rstrip() + "\n")
        depth += line.endswith("{")
    return "".join(lines)


def method(name, one, has_quick):
    quick = "" if one.quick or not has_quick else "        copy.quick = false;\n"
    also = f"        copy.{one.also};\n" if one.also else ""
    return f"""{javadoc(one.doc, "    ")}    public {name} {one.name}({one.parameters}) {{
        {name} copy = copy();
        copy.{one.field} = {one.value};
{also}{quick}        return copy;
    }}

"""


def readers(name, record, listed):
    """Methods that read options, and the class of a struct that C has filled."""
    parts, fills, shown = [], [], []
    for one in listed:
        type_, value, unset = one.type, one.field, "0"
        if one.parameters.startswith("Duration"):
            type_, unset = "Optional<Duration>", "empty"
            value = f"{value} == 0 ? Optional.empty() : Optional.of(Duration.ofNanos({value}))"
        doc = f"Returns what {{@link #{one.name}({one.parameters.split()[0]})}} has set; {unset} if it is not set."
        parts.append(f'{javadoc(doc, "    ")}    public {type_} {one.name}() {{\n        return {value};\n    }}\n\n')
        getter = re.search(r"options\.s(et\w+)", one.set)[1]
        fills.append(f"        options.{one.field} = given.g{getter}();\n")
        shown.append(f'{one.name}=" + {one.name}()' + ".orElse(null)" * (type_ != one.type))
    text = ' + ", '.join(shown)
    return "".join(parts) + f"""    @Override
    public String toString() {{
        return "{name}[{text}
                + "]";
    }}

    static {name} of({record.name} given) {{
        {name} options = new {name}();
{"".join(fills)}        return options;
    }}

"""


def to_native(record, listed):
    """How a class passes its options to C."""
    row = table(record.name)
    if record.name in CALLS:
        function = CALLS[record.name].removeprefix("dist_")
        arguments = [row.call[0], *(one.passed for one in listed if one.passed), row.call[1]]
        body = f"DistModule.{function}(" + ", ".join(arguments) + ");"
        lines = textwrap.wrap(body, WIDTH - 8, subsequent_indent=" " * 8)
        return f"""    /** Calls {function}() with these options. */
    void call(Uses uses, {row.takes}) {{
        {(chr(10) + " " * 8).join(lines)}
    }}
"""
    takes = "Uses uses" + (", Tokens tokens" if any("tokens" in one.set for one in listed) else "")
    takes += f", {row.takes}" if row.takes else ""
    sets = [row.check] * bool(row.check) + [
        f"{record.name} options = new {record.name}();", "uses.defer(options::delete);"]
    sets += [one.set for one in listed if one.set]
    sets += [row.last] * bool(row.last) + ["return options;"]
    return f"    {record.name} toNative({takes}) {{\n{''.join(indented(one, 2) for one in sets)}    }}\n"


def java_class(record, all_records):
    row, name = table(record.name), type_of(record.name)
    listed = members(record, all_records)
    doc = row.doc or re.sub(r"\bdist_\w+\(\)", lambda one: linked(one[0][:-2], record.name, all_records),
                            " ".join(record.comment.split()))
    doc, *rest = doc.split("\n\n")
    if "Immutable" not in doc:
        doc += " Immutable: each method returns a new set of options."
    doc = "\n\n".join([doc, *rest])
    fields = [one.type + " " + one.field + " = OptionalInt.empty()" * (one.type == "OptionalInt") + ";"
              + f" // {one.note}" * bool(one.note) for one in listed if one.field]
    copied = [one.field for one in listed if one.field]
    if row.quick:
        fields.append("boolean quick = true; // no other options are set than " + " and ".join(
            one.name for one in listed if one.quick and one.set))
        copied.append("quick")
    parts = [f"public final class {name} {{\n{row.constants}"]
    if row.default:
        parts.append(javadoc(row.default, "    ") + f"    public static final {name} DEFAULT = new {name}();\n\n")
    parts.append("".join(f"    {one}\n" for one in fields))
    parts.append(f"\n    private {name}() {{}}\n\n    private {name} copy() {{\n        {name} copy = new {name}();\n")
    parts.append("".join(f"        copy.{one} = {one};\n" for one in copied) + "        return copy;\n    }\n\n")
    if row.body:
        parts.append(row.body.strip("\n") + "\n\n")
    parts += [method(name, one, bool(row.quick)) for one in listed if one.parameters]
    if row.readable:
        parts.append(readers(name, record, listed))
    parts.append(to_native(record, listed))
    text = javadoc(doc) + "".join(parts) + "}\n"
    imported = {} if record.name in CALLS else {record.name: "org.libdist.internal"}
    imported |= {one: package for one, package in IMPORTS.items() if re.search(rf"\b{one}\b", text)}
    imports = "".join(f"import {package}.{one};\n" for package, one in sorted((p, o) for o, p in imported.items()))
    text = f"{HEAD}\n{imports}\n{text}"
    for line in text.split("\n"):
        if len(line) > WIDTH:
            raise Error(f"{name}.java has a line of more than {WIDTH} columns: {line}")
    return text


HEAD = """// SPDX-License-Identifier: Apache-2.0
// Generated by bindings/options.py from the headers: do not edit.

package org.libdist;
"""


def files(all_records):
    """Path below bindings -> text."""
    result = {}
    for record in all_records.values():
        if record.name in ARGUMENTS:
            for option in record.options:
                if option.name not in ARGUMENTS[record.name]:
                    raise Error(f"{record.name}.{option.name}: options_java_table.py needs the method that takes it")
            continue
        result[f"{FOLDER}/{type_of(record.name)}.java"] = java_class(record, all_records)
    return result

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that capi/api.py reads the headers the way a C compiler does.

usage: test_api.py API_PY COMPILER

The test writes everything that the parser found as C code and compiles it after the headers. It declares functions a
second time and asserts constants and fields. Then it parses small headers, valid and invalid ones.
"""
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile

UNDERSTOOD = """
/** @file
 * About it. */
/* ---- A section ---- */
/**
 * Does it.
 *
 * Context  Any,
 *          concurrent.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_f(const char *const *names, size_t n, struct other **out);
typedef struct dist_s {
  /* before */
  int32_t a;
  char tag[N]; /* behind */
  void (*call)(void *user_data, int64_t at);
} dist_s;
enum { ONE = 1, TWO, SEVEN = 7 /* seven */ };
typedef enum colour DIST_INT32 {
  RED = 0x101, /* not blue */
  /* not red */
  BLUE = 0x102,
  DIST_FORCE_INT32(COLOUR)
} colour;
#define TEXT(a) a + \\
  1
"""
NOT_UNDERSTOOD = ["#endif", "int x = 1;", "typedef union u { int a; } u;", "enum { A = B };", "DIST_API int f(int);", "int @;"]


def load(path):
    spec = importlib.util.spec_from_file_location("api", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def declared(name, parameters):
    return f"{name}({', '.join(one['text'] + ' ' + one['name'] for one in parameters) or 'void'})"


def as_c(found):
    """Yields a program that compiles only if all of this is correct."""
    yield "#include <assert.h>\n#include <string.h>"
    yield from (f"#include <dist/{file}>" for file in sorted({one["file"] for one in found["functions"]}))
    for one in found["functions"]:
        yield f"{one['returns']['text']} {declared(one['name'], one['parameters'])};"
    for one in found["callbacks"]:
        yield f"typedef {one['returns']['text']} {declared('(*' + one['name'] + ')', one['parameters'])};"
    for one in found["aliases"]:
        yield f"typedef {one['type']} {one['name']};"
    for one in found["handles"]:
        yield f"struct {one['name']};"
    for enum in found["enums"]:
        if enum["name"]:
            yield f"static_assert(sizeof({enum['name']}) == sizeof(int32_t), \"\");"
        for constant in enum["constants"]:
            yield f"static_assert({constant['name']} == {constant['value']}, \"\");"
    for struct in found["structs"]:
        yield from struct_as_c(struct)


def struct_as_c(struct):
    copy = "copy_of_" + struct["name"]
    yield f"struct {copy} {{"
    for field in struct["fields"]:
        if "function" in field:
            function = field["function"]
            head = "(*" + field["name"] + ")"
            yield f"{function['returns']['text']} {declared(head, function['parameters'])};"
        else:
            size = f"[{field['size']}]" if "size" in field else ""
            yield f"{field['text']} {field['name']}{size};"
    yield f"}};\nstatic_assert(sizeof(struct {copy}) == sizeof({struct['name']}), \"\");"
    yield f"static inline void check_{copy}(struct {copy} *a, {struct['name']} *b) {{"
    for field in struct["fields"]:
        name = field["name"]
        yield f"static_assert(offsetof(struct {copy}, {name}) == offsetof({struct['name']}, {name}), \"\");"
        # Comparing pointers to the two fields fails to compile if their types differ.
        yield f"(void)(&a->{name} == &b->{name});"
    yield "}"


def check_headers(api, compiler):
    found = api.parse(api.HEADERS)
    text = "".join(one.read_text(encoding="utf-8") for one in api.INCLUDE_DIST.glob("**/*.h"))
    functions = len(re.findall(r"^DIST_API\b", text, re.MULTILINE))
    assert len(found["functions"]) == functions, f"{len(found['functions'])} of {functions} functions"
    assert all(one["comment"] for one in found["functions"])
    owners = {}
    for enum in found["enums"]:
        for constant in enum["constants"] if enum["name"] not in (None, "dist_dtype") else []:
            owner = owners.setdefault(constant["value"] or constant["name"], enum["name"])
            assert owner == enum["name"], f"{constant['name']} is a value of {owner} too"
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "all.c")
        program.write_text("\n".join(as_c(found)) + "\n", encoding="utf-8")
        include = str(api.INCLUDE_DIST.parent)
        options = ["-std=c11", "-fsyntax-only", "-Werror", "-Wno-redundant-decls", "-I", include]
        subprocess.run([*compiler, *options, str(program)], check=True)


def check_snippets(api):
    with tempfile.TemporaryDirectory() as folder:
        header = pathlib.Path(folder, "x.h")
        header.write_text(UNDERSTOOD, encoding="utf-8")
        found = api.parse([header])
        (function,) = found["functions"]
        assert function["nodiscard"] and function["line"] == 12, function
        assert function["comment"]["fields"] == {"Context": "Any,\nconcurrent.", "Since": "0.1"}, function
        names, n, out = function["parameters"]
        assert names == {"name": "names", "type": "char", "const": True, "pointers": 2, "text": "const char *const *"}
        assert (n["text"], out["text"], out["pointers"]) == ("size_t", "struct other **", 2)
        a, tag, call = found["structs"][0]["fields"]
        assert (a["comment"]["text"], tag["comment"]["text"], tag["size"]) == ("before", "behind", "N")
        assert [one["name"] for one in call["function"]["parameters"]] == ["user_data", "at"]
        assert [(one["name"], one["value"]) for one in found["enums"][0]["constants"]] == [
            ("ONE", 1), ("TWO", 2), ("SEVEN", 7)]
        named = found["enums"][1]
        assert (named["name"], [one["value"] for one in named["constants"]]) == ("colour", [0x101, 0x102]), named
        assert [one["comment"]["text"] for one in named["constants"]] == ["not blue", "not red"], named
        assert found["macros"][0]["parameters"] == ["a"] and found["macros"][0]["text"] == "a + 1"
        assert not any(one["experimental"] for kind in found.values() for one in kind)
        # A header in the folder experimental is experimental; the header that it includes is not.
        more = pathlib.Path(folder, "experimental", "more.h")
        more.parent.mkdir()
        more.write_text('#include "../x.h"\n#ifdef __cplusplus\nextern "C" {\n#endif\nenum { MORE };\n', encoding="utf-8")
        header.write_text("enum { BASE };\n", encoding="utf-8")
        found = [(one["constants"][0]["name"], one["file"], one["experimental"]) for one in api.parse([more])["enums"]]
        assert found == [("BASE", "x.h", False), ("MORE", "experimental/more.h", True)], found
        # A header that is included from the same folder is read once, in place of the directive.
        header.write_text('enum { FIRST };\n#include "y.h"\n#include <stdint.h>\n#include "y.h"\n', encoding="utf-8")
        pathlib.Path(folder, "y.h").write_text('#include "x.h"\nenum { SECOND };\n', encoding="utf-8")
        found = api.parse([header])
        assert [one["constants"][0]["name"] for one in found["enums"]] == ["FIRST", "SECOND"], found["enums"]
        assert api.names(found) == {"FIRST", "SECOND"}
        for text in NOT_UNDERSTOOD:
            header.write_text(text + "\n", encoding="utf-8")
            try:
                api.parse([header])
            except api.Error as error:
                assert str(error).startswith("x.h:1: "), error
            else:
                raise AssertionError(f"taken for understood: {text}")


def main(parser, compiler):
    api = load(parser)
    check_snippets(api)
    check_headers(api, compiler.split())


if __name__ == "__main__":
    main(*sys.argv[1:])

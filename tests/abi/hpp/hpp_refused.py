#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what dist.hpp rejects at compile time: programs cannot write to const memory or immutable values.

Each case is a function body that compiles, and the same body with one change that the compiler must reject with the
expected message. All valid bodies are compiled as one program, and each invalid one separately.

usage: hpp_refused.py INCLUDE_DIR COMPILER...
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

PROLOGUE = """
#include <dist/dist.hpp>
#include <dist/experimental/rpc.hpp>
#include <string>
using dist::reduce_op;
using floats = std::vector<float>;
struct view {  // as std::span<const float>
  const float *data() const { return nullptr; }
  std::size_t size() const { return 0; }
};
struct writable_view {  // as std::span<float>
  float *data() const { return nullptr; }
  std::size_t size() const { return 0; }
};
struct given {
  dist::strategy_ref strategy;
  dist::replica replica;
  dist::value value;
  dist::variable_ref variable;
  dist::partition partition;
  dist_tensor c;
  const dist_tensor const_c;
};
"""

DELETED = r"deleted"
CONST_POINTER = r"const float ?\*.*to.*float ?\*|'float \*' with an rvalue of type 'const float \*'"
READ_ONLY = r"read-only|const-qualified"
NO_CONVERSION = r"could not convert|no viable|no matching|no known conversion|cannot convert|conversion from|incompatible type"

# The subject, the body that compiles, the body that is rejected, and the compiler's message.
CASES = [
    # A collective must be able to write to its outputs.
    ("const vector", "floats v; g.replica.all_reduce(reduce_op::sum, v);",
     "const floats v; g.replica.all_reduce(reduce_op::sum, v);", DELETED),
    ("const array", "std::array<float, 2> a{}; g.replica.broadcast(0, a);",
     "const std::array<float, 2> a{}; g.replica.broadcast(0, a);", DELETED),
    ("view of const", "writable_view v; g.replica.all_reduce(reduce_op::sum, v);",
     "view v; g.replica.all_reduce(reduce_op::sum, v);", DELETED),
    ("const scalar", "float x = 0; g.replica.all_reduce(reduce_op::sum, dist::tensor(&x, {}));",
     "const float x = 0; g.replica.all_reduce(reduce_op::sum, dist::tensor(&x, {}));", DELETED),
    ("const pointer, sized", "float *p = nullptr; dist::tensor t(p, 2); (void)t;",
     "const float *p = nullptr; dist::tensor t(p, 2); (void)t;", DELETED),
    ("const pointer, shaped", "float *p = nullptr; std::vector<int64_t> s; dist::tensor t(p, s); (void)t;",
     "const float *p = nullptr; std::vector<int64_t> s; dist::tensor t(p, s); (void)t;", DELETED),
    ("const bytes", "void *p = nullptr; dist::tensor t(p, DIST_F16, {1}); (void)t;",
     "const void *p = nullptr; dist::tensor t(p, DIST_F16, {1}); (void)t;", DELETED),
    ("const_tensor in place", "floats v; dist::tensor t(v); g.replica.all_reduce(reduce_op::sum, t);",
     "floats v; dist::const_tensor t(v); g.replica.all_reduce(reduce_op::sum, t);", DELETED),
    ("const_tensor made writable", "floats v; dist::tensor t(v); dist::tensor u(t); (void)u;",
     "floats v; dist::const_tensor t(v); dist::tensor u(t); (void)u;", DELETED),
    ("const_tensor by way of C", "floats v; dist::tensor t(v); dist::tensor u(t.get()); (void)u;",
     "floats v; dist::const_tensor t(v); dist::tensor u(t.get()); (void)u;", DELETED),
    ("const_tensor's data", "floats v; float *p = dist::tensor(v).data<float>(); (void)p;",
     "floats v; float *p = dist::const_tensor(v).data<float>(); (void)p;", CONST_POINTER),
    ("const_tensor with strides", "floats v; float *p = dist::tensor(v).strided({1}).data<float>(); (void)p;",
     "floats v; float *p = dist::const_tensor(v).strided({1}).data<float>(); (void)p;", CONST_POINTER),
    ("list of const_tensors", "floats v; dist::tensor_list l{dist::tensor(v)}; g.replica.broadcast(0, l);",
     "floats v; dist::const_tensor_list l{dist::tensor(v)}; g.replica.broadcast(0, l);", DELETED),
    ("vector of const_tensors", "std::vector<dist::tensor> l; g.replica.broadcast(0, l);",
     "std::vector<dist::const_tensor> l; g.replica.broadcast(0, l);", DELETED),
    ("const among several", "floats a, b; g.replica.broadcast(0, {a, b});",
     "floats a; const floats b; g.replica.broadcast(0, {a, b});", NO_CONVERSION + "|" + DELETED),
    ("const as third of several", "floats a, b, c; g.replica.broadcast(0, {a, b, c});",
     "floats a, b; const floats c; g.replica.broadcast(0, {a, b, c});", NO_CONVERSION + "|" + DELETED),
    ("const output", "const floats in; floats out; g.replica.all_gather(in, out);",
     "const floats in; const floats out; g.replica.all_gather(in, out);", DELETED),
    ("const output of a work", "const floats in; floats out; (void)g.replica.begin().all_to_all(in, out);",
     "const floats in; const floats out; (void)g.replica.begin().all_to_all(in, out);", DELETED),
    ("const in a plan", "floats v; (void)g.replica.plan().all_reduce(reduce_op::sum, v);",
     "const floats v; (void)g.replica.plan().all_reduce(reduce_op::sum, v);", DELETED),
    ("const parameters", "floats d, p; g.replica.reduce_apply(reduce_op::sum, d, p, dist::apply::sgd(1));",
     "floats d; const floats p; g.replica.reduce_apply(reduce_op::sum, d, p, dist::apply::sgd(1));", DELETED),
    ("const gradients", "floats d, p; g.replica.reduce_apply(reduce_op::sum, d, p, dist::apply::sgd(1));",
     "const floats d; floats p; g.replica.reduce_apply(reduce_op::sum, d, p, dist::apply::sgd(1));", DELETED),
    ("const states", "floats m; dist::tensor_list l{dist::tensor(m)}; dist::apply::sgd(1, 1).states(l);",
     "floats m; dist::const_tensor_list l{dist::tensor(m)}; dist::apply::sgd(1, 1).states(l);",
     NO_CONVERSION),
    ("const around a halo", "const floats in; floats out; g.replica.halo_exchange(in, dist::halo({1}), out);",
     "const floats in; const floats out; g.replica.halo_exchange(in, dist::halo({1}), out);", DELETED),
    ("const of a reshard", "const floats in; floats out; g.replica.reshard(g.partition, g.partition, in, out);",
     "const floats in; const floats out; g.replica.reshard(g.partition, g.partition, in, out);", DELETED),
    # A value is immutable; the struct in C is const if its memory is.
    ("value", "const float *p = g.value.tensor().data<float>(); (void)p;",
     "float *p = g.value.tensor().data<float>(); (void)p;", CONST_POINTER),
    ("value, an element", "(void)(g.value.tensor().data<float>()[0] == 9);",
     "g.value.tensor().data<float>()[0] = 9;", READ_ONLY),
    ("value, reduced in place", "floats v; g.replica.all_reduce(reduce_op::sum, dist::tensor(v));",
     "g.replica.all_reduce(reduce_op::sum, g.value.tensor());", DELETED),
    ("value as a tensor", "dist::const_tensor t = g.value.tensor(); (void)t;",
     "dist::tensor t = g.value.tensor(); (void)t;", NO_CONVERSION + "|" + DELETED),
    ("value as a tensor, asked for", "dist::const_tensor t(g.value.tensor()); (void)t;",
     "dist::tensor t(g.value.tensor()); (void)t;", DELETED),
    ("shard of a value", "const float *p = g.value.shard(0).tensor.data<float>(); (void)p;",
     "float *p = g.value.shard(0).tensor.data<float>(); (void)p;", CONST_POINTER),
    ("pointer to a const object", "int x = 0; (void)dist::value::object(g.strategy, &x);",
     "const int x = 0; (void)dist::value::object(g.strategy, &x);", r"invalid conversion|no matching"),
    ("owner of a const object", "(void)dist::value::object(g.strategy, std::make_unique<int>(1));",
     "(void)dist::value::object(g.strategy, std::make_unique<const int>(1));", r"invalid conversion|no matching"),
    ("C's const tensor", "dist::tensor t(g.c); (void)t;", "dist::tensor t(g.const_c); (void)t;", DELETED),
    ("input of the host's reduction",
     "dist::cross_device_functions f; f.reduce = [](reduce_op, const dist_tensor *, std::size_t, dist_tensor &o)"
     " { *dist::tensor(o).data<float>() = 1; };",
     "dist::cross_device_functions f; f.reduce = [](reduce_op, const dist_tensor *i, std::size_t, dist_tensor &)"
     " { dist::tensor t(i[0]); };", DELETED),
    ("a variable's copy in an update",
     "g.strategy.update(g.variable, [](dist::tensor t, const dist::value &) { *t.data<float>() = 1; }, g.value);",
     "g.strategy.update(g.variable, [](dist::const_tensor t, const dist::value &) { *t.data<float>() = 1; }, g.value);",
     READ_ONLY),
    # Each enum is a separate type.
    ("operator for a kind of scan", "floats v; g.replica.scan(reduce_op::sum, DIST_SCAN_EXCLUSIVE, v);",
     "floats v; g.replica.scan(reduce_op::sum, DIST_REDUCE_MAX, v);", NO_CONVERSION),
    ("swapped in C's function",
     "(void)!dist_scan(nullptr, DIST_REDUCE_SUM, DIST_SCAN_EXCLUSIVE, &g.c, &g.c, 1, nullptr, nullptr);",
     "(void)!dist_scan(nullptr, DIST_SCAN_EXCLUSIVE, DIST_REDUCE_SUM, &g.c, &g.c, 1, nullptr, nullptr);", NO_CONVERSION),
    ("threads for a kind of strategy", "dist_strategy_options o = DIST_STRATEGY_OPTIONS_INIT; o.threads = DIST_THREADS_HOST; (void)o;",
     "dist_strategy_options o = DIST_STRATEGY_OPTIONS_INIT; o.kind = DIST_THREADS_HOST; (void)o;", NO_CONVERSION),
    # A number is an index and never a name.
    ("number for a device", 'g.strategy.reduce_to(reduce_op::sum, g.value, "CPU:0");',
     "g.strategy.reduce_to(reduce_op::sum, g.value, 0);", DELETED),
    ("character for an index", "(void)g.value[0];", "(void)g.value['0'];", r"no match|no viable"),
    # Dropping the handle that get() returns is an error: fetch(), which throws, was meant.
    ("handle for a result", "dist::remote_value r; (void)r.get(); (void)r.fetch();", "dist::remote_value r; r.get();",
     r"nodiscard"),
    ("handle that is dropped", "(void)g.value.get();", "g.value.get();", r"nodiscard"),
]


def precompiled(compiler: list[str], folder: Path) -> list[str]:
    """Compiles the prologue once for all cases. Returns the arguments that include it."""
    header = folder / "prologue.hpp"
    header.write_text(PROLOGUE)
    is_clang = "clang" in subprocess.run([*compiler, "--version"], capture_output=True, text=True, check=True).stdout
    made = header.with_suffix(".hpp.pch" if is_clang else ".hpp.gch")
    subprocess.run([*compiler, "-x", "c++-header", str(header), "-o", str(made)], check=True)
    return ["-include-pch", str(made)] if is_clang else ["-include", str(header)]


def complaint(compiler: list[str], source: str) -> str:
    """Returns the compiler's errors, or an empty text if it accepts the program."""
    done = subprocess.run(
        [*compiler, "-fsyntax-only", "-x", "c++", "-"], input=source, capture_output=True, text=True, check=False
    )
    if done.returncode == 0 and not done.stderr:
        return ""
    return "\n".join(line for line in done.stderr.splitlines() if "error:" in line) or done.stderr or "refused"


def function(number: int, body: str) -> str:
    return f"void body_{number}(given &g);\nvoid body_{number}([[maybe_unused]] given &g) {{ {body} }}\n"


def main(include: str, compilers: list[str]) -> int:
    failed = 0
    for name in compilers:
        compiler = [*name.split(), "-std=c++17", "-Wall", "-Wextra", "-I", include]
        with tempfile.TemporaryDirectory(prefix="dist-refused-") as folder:
            compiler += precompiled(compiler, Path(folder))
            good = "".join(function(i, case[1]) for i, case in enumerate(CASES))
            if trouble := complaint(compiler, good):
                print(f"not ok: {name}: what should compile does not: {trouble}")
                failed += 1
            for about, _, bad, words in CASES:
                said = complaint(compiler, function(0, bad))
                if re.search(words, said):
                    continue
                print(f"not ok: {name}: {about}: {'refused in other words: ' + said if said else 'compiled'}")
                failed += 1
        print(f"{name}: {len(CASES)} cases")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))

# SPDX-License-Identifier: Apache-2.0
"""The navigation of the site: each section's title, and its pages in order.

A page is the path of a Markdown file from the root of the tree. A pattern stands for all files that it matches. A name
that begins with "reference/" is a page that the build generates; REFERENCES has those that are short.
"""

HOME = "README.md"

NAVIGATION = (
    (
        "Get started",
        (
            "examples/guide/install.md",
            "examples/guide/first-program.md",
            "examples/guide/two-processes.md",
            "examples/guide/serve.md",
        ),
    ),
    (
        "Guide",
        (
            "examples/guide/README.md",
            "examples/guide/concepts.md",
            "examples/guide/training.md",
            "examples/guide/variables.md",
            "examples/guide/input.md",
            "examples/guide/collectives.md",
            "examples/guide/numerics.md",
            "examples/guide/deadlines.md",
            "examples/guide/observing.md",
            "examples/guide/embedding.md",
            "examples/guide/logical-devices.md",
            "examples/guide/errors.md",
            "examples/guide/building.md",
            "examples/guide/environment.md",
            "examples/guide/platforms.md",
            "examples/guide/performance.md",
            "examples/guide/commands.md",
        ),
    ),
    (
        "Many workers",
        (
            "examples/guide/processes.md",
            "examples/guide/launching.md",
            "examples/guide/tls.md",
            "examples/guide/failures.md",
            "examples/guide/parameter-servers.md",
            "examples/guide/checkpoints.md",
        ),
    ),
    (
        "Porting",
        (
            "examples/guide/porting-tf.md",
            "examples/guide/porting-mpi.md",
            "examples/guide/porting-threads.md",
            "examples/guide/porting-ddp.md",
        ),
    ),
    (
        "Operations",
        (
            "examples/guide/sizing.md",
            "examples/guide/security.md",
            "examples/guide/upgrades.md",
            "examples/guide/troubleshooting.md",
            "examples/guide/debugging.md",
        ),
    ),
    (
        "Languages",
        (
            "bindings/go/README.md",
            "bindings/java/README.md",
            "bindings/python/README.md",
            "bindings/python/TF.md",
            "include/dist/TF_DISTRIBUTE.md",
        ),
    ),
    (
        "Reference",
        (
            "reference/c/index",
            "reference/cpp",
            "reference/go",
            "reference/java",
            "reference/python",
            "capi/tools/README.md",
        ),
    ),
    (
        "Examples",
        (
            "examples/README.md",
            "examples/digits/README.md",
            "examples/inference_host/README.md",
            "examples/tensor_parallel/README.md",
            "examples/link_module/README.md",
            "examples/data/README.md",
        ),
    ),
    (
        "Project",
        (
            "CHANGELOG.md",
            "CONTRIBUTING.md",
        ),
    ),
    (
        "Internals",
        (
            "ARCHITECTURE.md",
            "capi/README.md",
            "core/**/README.md",
            "bindings/README.md",
            "bindings/exceptions.md",
            ".ci/packaging/README.md",
            "tests/**/*.md",
        ),
    ),
)

REFERENCES = {
    "reference/cpp": """# C++ reference

C++ programs include `<dist/dist.hpp>`, which is built on the C API. <a href="../doxygen/annotated.html">Doxygen's pages</a>
list its classes, and <a href="../doxygen/files.html">the headers</a> with their functions.
""",
    "reference/java": """# Java reference

The classes are in the package `org.libdist`. <a href="../java/index.html">Javadoc's pages</a> describe them.
""",
    "reference/python": """# Python reference

```{eval-rst}
.. automodule:: libdist
   :members:
   :imported-members:
   :undoc-members:
```
""",
}

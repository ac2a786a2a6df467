# SPDX-License-Identifier: Apache-2.0
# The generated module, private: the functions of the headers and of dist.i under their C names. What they give is typed above it.
from typing import Any

class Callbacks:
    def __disown__(self) -> Callbacks: ...

class ResolverCallbacks:
    def __disown__(self) -> ResolverCallbacks: ...

def __getattr__(name: str) -> Any: ...

// SPDX-License-Identifier: Apache-2.0
// DIST_ON_STACK: an uninitialized array on the stack of the calling function, whose length is known only at
// run time.
//
// A collective needs arrays with an element for each member or contribution. A fixed length would limit their
// number, and a collective must not allocate. run.h states how much stack a call needs.
//
// The array lives until the function returns, so do not use this in a loop.
#pragma once

#include <cstddef>

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): the array belongs to the caller's stack frame
#define DIST_ON_STACK(T, count) \
  static_cast<T*>(__builtin_alloca_with_align(sizeof(T) * static_cast<std::size_t>(count), 8 * alignof(T)))

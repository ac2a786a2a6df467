// SPDX-License-Identifier: Apache-2.0
// The threads of a program with several workers. This is a separate function, so that transcripts can wrap
// it.
#pragma once

#include <cstddef>

using golden_worker_fn = void (*)(std::size_t worker, void* user_data);

// Calls fn(worker, user_data) for each of n workers, each on its own thread, at the same time. fn must not
// throw.
extern "C" void golden_on_workers(std::size_t n, golden_worker_fn fn, void* user_data);

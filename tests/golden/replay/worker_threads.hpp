// SPDX-License-Identifier: Apache-2.0
// The threads of a program with several workers. This is a separate function, so that transcripts can wrap
// it.
#pragma once

#include <cstddef>

using golden_worker_fn = void (*)(std::size_t worker, void* user_data);

// fn(worker, user_data) on a thread for each of n workers, at the same time. It must not throw.
extern "C" void golden_on_workers(std::size_t n, golden_worker_fn fn, void* user_data);

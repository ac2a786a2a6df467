// SPDX-License-Identifier: Apache-2.0
// Sleeps until a word changes or a timeout expires; std::atomic::wait has no timeout.
#pragma once

#include <atomic>
#include <cstdint>

namespace dist {

// Sleeps while `word` contains `seen`, for at most timeout_ns (< 0: no limit). May return early without a
// reason.
void park(const std::atomic<uint32_t>& word, uint32_t seen, int64_t timeout_ns) noexcept;

// Wakes all threads that sleep on `word`. Call this after changing the word.
void unpark_all(const std::atomic<uint32_t>& word) noexcept;

}  // namespace dist

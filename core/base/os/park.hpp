// SPDX-License-Identifier: Apache-2.0
// Sleeps until a word changes or a timeout expires; std::atomic::wait has no timeout.
#pragma once

#include <atomic>
#include <cstdint>

namespace dist {

// Sleeps while `word` holds `seen`, at most timeout_ns (< 0: without limit). May return early for no reason.
void park(const std::atomic<uint32_t>& word, uint32_t seen, int64_t timeout_ns) noexcept;

// Wakes all that sleep on `word`. Who changes a word wakes after the change.
void unpark_all(const std::atomic<uint32_t>& word) noexcept;

}  // namespace dist

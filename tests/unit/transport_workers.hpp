// SPDX-License-Identifier: Apache-2.0
// Support for the tests of the suite (transport_suite.hpp): all workers of a fixture, and bytes to send.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "tests/unit/transport_suite.hpp"

namespace dist {

using End = Transfer::End;
inline constexpr std::size_t kCredit = 4096;

inline const TransportSuite& suite_of(void** state) { return *static_cast<const TransportSuite*>(*state); }

// All workers of a fixture, after joining.
struct Workers {
  Workers(void** state, int n, std::size_t credit = kCredit) : fixture(suite_of(state).make(n, credit)) {
    for (int w = 0; w < n; ++w) at.push_back(&fixture->join(w));
  }
  ~Workers() {
    for (Transport* each : at) each->close();
  }
  Transport& operator[](int worker) { return *at[static_cast<std::size_t>(worker)]; }
  void progress() {
    for (Transport* each : at) each->progress();
  }
  // If this hangs, the test's timeout ends it.
  End wait(Transfer& transfer) {
    until([&] { return transfer.over(); });
    return transfer.end();
  }
  template <class Condition>
  void until(const Condition& holds) {
    while (!holds()) {
      progress();
      std::this_thread::yield();
    }
  }
  // Makes enough progress for every message that can move.
  void settle() {
    for (int i = 0; i < 64; ++i) progress();
  }

  std::unique_ptr<TransportFixture> fixture;
  std::vector<Transport*> at;
};

inline std::vector<std::byte> pattern(std::size_t bytes, uint64_t seed) {
  std::vector<std::byte> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(seed * 131 + i * 7 + (i >> 8));
  return made;
}

#define assert_end(given, wanted) assert_int_equal(static_cast<int>(given), static_cast<int>(End::wanted))

// Tests in transport_losses.cpp.
void who_is_lost_ends_what_waits_for_it(void** state);
void one_leaves_before_any_message(void** state);
void one_leaves_while_much_comes_to_it(void** state);

}  // namespace dist

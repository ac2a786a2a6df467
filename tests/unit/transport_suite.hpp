// SPDX-License-Identifier: Apache-2.0
// The guarantees of every transport (core/net/transport.hpp), as tests for any transport.
#pragma once

#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/net/transport.hpp"

extern "C" {
#include <cmocka.h>
}

namespace dist {

// Workers that reach each other, of which none has joined yet.
class TransportFixture {
 public:
  virtual ~TransportFixture() = default;
  // Joins, once.
  virtual Transport& join(int worker) = 0;
  // The credit that it was made with is the transports'.
};

struct TransportSuite {
  const char* name;
  std::function<std::unique_ptr<TransportFixture>(int num_workers, std::size_t credit)> make;
  uint64_t seed;
  // Whether a sender knows that its receiver waits, so that what fits into the credit goes straight there; else it is
  // over as soon as it has gone ahead, whatever the receiver wants.
  bool senders_know_receives = true;
  std::deque<std::string> titles = {};
};

// The tests of one transport; the suite stays until they have run.
std::vector<CMUnitTest> tests_of(TransportSuite& suite);

}  // namespace dist

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

// Connected workers, none of which has joined yet.
class TransportFixture {
 public:
  virtual ~TransportFixture() = default;
  // Called once per worker.
  virtual Transport& join(int worker) = 0;
  // The transports have the credit with which the fixture was made.
};

struct TransportSuite {
  const char* name;
  std::function<std::unique_ptr<TransportFixture>(int num_workers, std::size_t credit)> make;
  uint64_t seed;
  // Whether a sender knows that its receiver waits. If so, a message within the credit goes directly into the
  // receive; if not, a send is complete when it has been sent ahead, whatever the receiver wants.
  bool senders_know_receives = true;
  std::deque<std::string> titles = {};
};

// Returns the tests of one transport. The suite must exist until they have run.
std::vector<CMUnitTest> tests_of(TransportSuite& suite);

}  // namespace dist

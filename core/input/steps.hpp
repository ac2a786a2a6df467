// SPDX-License-Identifier: Apache-2.0
// Steps: workers that iterate over a dataset together agree on the number of steps through this interface.
// All workers must make the same calls in the same order.
#pragma once

#include "core/base/memory.hpp"
#include "core/base/status.hpp"

namespace dist {

class Steps : public Counted {
 public:
  // A worker's contribution to a step.
  struct Ballot {
    bool batch = false;    // it has a batch
    bool nothing = false;  // it does not even have an empty batch, because a batch cannot be empty
    bool unknown = false;  // it does not know the structure of an empty batch
  };
  struct Outcome {
    bool batch = false;  // any worker has one
    bool nothing = false;
    int32_t unknown = -1;  // the last worker that does not know; -1: none
  };
  // Waits for the other workers. `call` is the host's function, for messages.
  virtual Status vote(const char* call, const Ballot& mine, Outcome* any) = 0;
  // Votes in such a way that the other workers fail, too. Returns the failure.
  virtual Status fail_all(const char* call, const ErrorRecord& why) = 0;

 protected:
  using Counted::Counted;
};

}  // namespace dist

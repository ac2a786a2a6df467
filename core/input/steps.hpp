// SPDX-License-Identifier: Apache-2.0
// Steps: how the workers that pass over a dataset together come to the same number of steps. Every worker makes the same
// calls in the same order.
#pragma once

#include "core/base/memory.hpp"
#include "core/base/status.hpp"

namespace dist {

class Steps : public Counted {
 public:
  // What a worker has of a step.
  struct Ballot {
    bool batch = false;    // one of its own
    bool nothing = false;  // not even an empty one, as there cannot be any
    bool unknown = false;  // it does not know what an empty one is like
  };
  struct Outcome {
    bool batch = false;  // of any worker
    bool nothing = false;
    int32_t unknown = -1;  // the last worker that does not know
  };
  // Waits for the others. `call` is the function's name in messages.
  virtual Status vote(const char* call, const Ballot& mine, Outcome* any) = 0;
  // In place of a vote: the others fail too. Returns the failure.
  virtual Status fail_all(const char* call, const ErrorRecord& why) = 0;

 protected:
  using Counted::Counted;
};

}  // namespace dist

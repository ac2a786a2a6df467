// SPDX-License-Identifier: Apache-2.0
// Keeper: a small process that survives if the launcher is killed, and then kills the process groups of its
// tasks. The tasks themselves die with the launcher because of PR_SET_PDEATHSIG, but the processes that they
// started do not.
#pragma once

#include <sys/types.h>

#include "capi/tools/fd.hpp"

namespace dist::launch {

class Keeper {
 public:
  Keeper() = default;
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  // The process ends by itself when no group is left.
  ~Keeper();

  // Returns false and sets errno on failure.
  bool start();
  // Called by the group's leader before it executes the program, so the keeper knows every group from the
  // beginning.
  void add(pid_t group) const noexcept { tell(group); }
  // Called before the group's leader is reaped: until then, its number cannot be reused.
  void remove(pid_t group) const noexcept { tell(-group); }

 private:
  void tell(pid_t number) const noexcept;

  Fd to_;
  pid_t pid_ = -1;
};

}  // namespace dist::launch

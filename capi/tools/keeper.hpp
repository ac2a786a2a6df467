// SPDX-License-Identifier: Apache-2.0
// Keeper: a small process that outlives a launcher which is killed, and then kills the process groups of its tasks. A task
// itself dies with the launcher by PR_SET_PDEATHSIG; what it has started does not, and would stay.
#pragma once

#include <sys/types.h>

#include "capi/tools/fd.hpp"

namespace dist::launch {

class Keeper {
 public:
  Keeper() = default;
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  // With no group left it ends by itself.
  ~Keeper();

  // False with errno.
  bool start();
  // From the process that leads the group, before it becomes a program: there is then no time at which nobody knows it.
  void add(pid_t group) const noexcept { tell(group); }
  // Before the group's leader is reaped: until then its number is no other group's.
  void remove(pid_t group) const noexcept { tell(-group); }

 private:
  void tell(pid_t number) const noexcept;

  Fd to_;
  pid_t pid_ = -1;
};

}  // namespace dist::launch

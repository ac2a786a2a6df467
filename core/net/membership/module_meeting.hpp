// SPDX-License-Identifier: Apache-2.0
// ModuleMeeting: a meeting of workers through a link module that knows their job (dist_link_functions.meet),
// such as MPI's. The module knows each worker's rank, and sends all workers the address at which worker 0
// listens.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <string>

#include "core/base/cancel.hpp"
#include "core/base/status.hpp"
#include "core/net/membership/launcher.hpp"
#include "dist/experimental/links.h"

namespace dist {

class ModuleMeeting {
 public:
  // `functions` must have `meet`. `cancel` may be NULL.
  ModuleMeeting(const dist_link_functions& functions, int64_t until_ns, Cancel* cancel) noexcept
      : functions_(functions), until_ns_(until_ns), cancel_(cancel) {}

  // Waits until the module knows the place of this process. The port of worker 0's address is 0.
  Status begin(Memory& memory, RendezvousPlace* out);
  // On worker 0: sends its address to the others.
  Status send(const std::pmr::string& address);
  // On the other workers: waits for that address.
  Status receive(std::pmr::string* out);

 private:
  Status call();
  template <class Done>
  Status repeat(const char* missing, const Done& done);

  const dist_link_functions& functions_;
  const int64_t until_ns_;
  Cancel* const cancel_;
  dist_link_meeting meeting_{sizeof meeting_, -1, 0, 0, 0, "", ""};
};

}  // namespace dist

// SPDX-License-Identifier: Apache-2.0
#include "core/net/membership/module_meeting.hpp"

#include <atomic>

#include "core/base/os/clock.hpp"
#include "core/base/os/park.hpp"
#include "core/base/text.hpp"
#include "core/net/membership/registration.hpp"

namespace dist {
namespace {

constexpr int64_t kPauseNs = 1'000'000;

}  // namespace

Status ModuleMeeting::call() {
  char why[512] = "";
  const dist_status status = functions_.meet(&meeting_, why, sizeof why);
  if (status == DIST_OK) return kOk;
  return fail(status, "the link module \"%s\" cannot be used: %s", functions_.name, why);
}

// Calls the module until `done` returns true.
template <class Done>
Status ModuleMeeting::repeat(const char* missing, const Done& done) {
  std::atomic<uint32_t> never{0};
  for (;;) {
    DIST_TRY(call());
    if (done()) return kOk;
    if (cancel_ != nullptr && cancel_->signalled()) return fail(DIST_CANCELLED, "%s", cancel_->reason());
    if (steady_now_ns() >= until_ns_) return fail(DIST_DEADLINE_EXCEEDED, "%s", missing);
    park(never, 0, kPauseNs);
  }
}

Status ModuleMeeting::begin(Memory& memory, RendezvousPlace* out) {
  DIST_TRY(repeat(
      "some processes of the job have not initialized the link module. Create a strategy in all of them",
      [&] { return meeting_.rank >= 0; }));
  out->rank = meeting_.rank;
  out->size = meeting_.size;
  out->rank_source = out->size_source = out->address_source = functions_.name;
  meeting_.host[sizeof meeting_.host - 1] = '\0';
  out->address = address_text(memory, meeting_.host, 0);
  return kOk;
}

Status ModuleMeeting::send(const std::pmr::string& address) {
  if (address.size() >= sizeof meeting_.text) {
    return invalid_argument("the address of worker 0, \"%s\", is too long", Shown(address.c_str()).c_str());
  }
  copy_text(meeting_.text, address.c_str());
  meeting_.has_text = 1;
  return call();
}

Status ModuleMeeting::receive(std::pmr::string* out) {
  meeting_.has_text = 0;
  DIST_TRY(repeat("worker 0 has not begun to wait for the others", [&] { return meeting_.has_text == 1; }));
  meeting_.text[sizeof meeting_.text - 1] = '\0';
  *out = meeting_.text;
  return kOk;
}

}  // namespace dist

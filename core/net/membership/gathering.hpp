// SPDX-License-Identifier: Apache-2.0
// Gathering: worker 0's side of a rendezvous. It takes the registrations of the other workers, and answers
// all of them once they are complete.
//
// Registrations arrive on threads of the network; the thread of worker 0 waits in gather().
//
// Invariants: no call is answered under the lock, because the network may report the end of another one
// meanwhile. A worker whose connection ends before the answer is no longer registered, so it can be started
// again. Only a bounded number of rejections is kept.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory_resource>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/cancel.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/cluster/cluster_spec.hpp"
#include "core/net/calls.hpp"
#include "core/net/membership/registration.hpp"

namespace dist {

class Gathering final : public CallHandler, private Cancel::Link {
 public:
  // `address`: of the rendezvous. `own`: worker 0's registration, including its host.
  Gathering(Memory& memory, const char* address, const Registration& own);

  // Replaces the address if its port was not known before. Must be called before others learn the address.
  void set_address(std::string_view address);

  // Waits until all workers have registered, and answers them with the cluster. `until_ns` is a time of the
  // steady clock; `cancel` may be NULL. If this fails, the workers that have registered fail with the same
  // message. Must be called once.
  Status gather(int64_t until_ns, Cancel* cancel, Ref<ClusterSpec>* out);

 private:
  struct Place {
    Ref<IncomingCall> call;  // of ranks other than 0, as long as they are registered
    std::pmr::string address;
    int64_t answer_by_ns = 0;
  };

  void called(Ref<IncomingCall> call) noexcept override;
  void given_up(IncomingCall& call) noexcept override;
  void wrong_secret() noexcept override;
  void cancelled(const char* reason) noexcept override;

  // Registers the caller. Fails if it cannot take part.
  Status take(const Ref<IncomingCall>& call);
  Status check(const Registration& given, const std::pmr::string& address) const;
  std::pmr::string host_of(const Registration& given, const IncomingCall& call) const;
  void wake() noexcept;
  // The lock must be held for the following.
  std::size_t num_missing() const noexcept;
  std::pmr::string describe_missing() const;
  // Removes the calls that must be answered at `now`, and returns the time at which the next one is due.
  int64_t take_late(int64_t now, std::pmr::vector<Ref<IncomingCall>>* out);
  void take_all(std::pmr::vector<Ref<IncomingCall>>* out);

  Status finish(Ref<ClusterSpec>* out);

  Memory& memory_;
  const Registration& own_;

  std::atomic<uint32_t> changes_{0};
  mutable std::mutex mutex_;  // protects everything below
  std::pmr::string address_;
  std::pmr::vector<Place> places_;
  bool over_ = false;  // no more registrations are accepted
  bool cancelled_ = false;
  char reason_[kReasonBytes] = "";
  int num_strangers_ = 0;
  int num_rejected_ = 0;
  std::pmr::string rejections_;  // the first few
};

}  // namespace dist

// SPDX-License-Identifier: Apache-2.0
// Joining: the side of a rendezvous of a worker other than worker 0. It registers with worker 0 until it
// receives the cluster, is rejected, or its deadline expires.
//
// Invariant: only a peer that has proven the job's secret can end the registration early. A broken connection
// does not end it either, because another job may have used the address before.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/base/cancel.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/cluster/cluster_spec.hpp"
#include "core/net/grpc_calls.hpp"
#include "core/net/membership/registration.hpp"

namespace dist {

class Joining final : private OutgoingCall, private Cancel::Link {
 public:
  // All of these must outlive this object.
  Joining(Memory& memory, GrpcCalls& network, const Registration& own, const char* address) noexcept
      : memory_(memory), network_(network), own_(own), address_(address) {}
  ~Joining() override;

  Status open();
  // `cancel` may be NULL. Must be called once.
  Status join(int64_t until_ns, Cancel* cancel, Ref<ClusterSpec>* out);

 private:
  // Registers once. If the result is OK, the cluster is in answer_, otherwise the reason is in text_.
  dist_status try_once(int64_t until_ns);
  void answered(dist_status status, const char* text, Ref<CallMessage> answer) noexcept override;
  void cancelled(const char* reason) noexcept override;
  bool is_cancelled() const noexcept;

  Memory& memory_;
  GrpcCalls& network_;
  const Registration& own_;
  const char* const address_;  // of the rendezvous
  CallChannel* channel_ = nullptr;

  std::atomic<uint32_t> changes_{0};
  mutable std::mutex mutex_;  // protects everything below
  bool answered_ = false;
  dist_status status_ = DIST_OK;
  char text_[sizeof ErrorRecord::message] = "";
  Ref<CallMessage> answer_;
  bool cancelled_ = false;
  char reason_[kReasonBytes] = "";
};

}  // namespace dist

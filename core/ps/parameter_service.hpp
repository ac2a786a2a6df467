// SPDX-License-Identifier: Apache-2.0
// ParameterService: a parameter store as the calls of other processes reach it. Calls are done one after another, in the order
// in which they have come: small ones on the thread that brings them, large ones, and functions of the host's, on oneTBB's.
//
// Each message is a tuple (core/ps/numbers.hpp), whose first number is the job's epoch, a number of the coordinator's own:
// what another one left behind is refused.
//
//     dist.ps.create         epoch, number;  the value                                   nothing
//     dist.ps.read           epoch, number ...                                           a tuple of tensors
//     dist.ps.rows           epoch, number;  indices i32 or i64 [k]                      the tensor [k, rest]
//     dist.ps.commit         epoch, id, mark, and for each operation what, how, n, n numbers;
//                            a tuple with a value for each; an update's is a tuple of its function's name and its arguments
//                                                                                        1 if it was applied, else 0
//     dist.ps.snapshot       epoch: keeps all variables as they are                      AppliedIds as numbers
//     dist.ps.snapshot_read  epoch, number                                               the tensor
//     dist.ps.snapshot_end   epoch                                                       nothing
//     dist.ps.restore        epoch, AppliedIds as numbers                                nothing
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory_resource>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/engine/calls.hpp"
#include "core/ps/parameter_store.hpp"
#include "core/trace/spans.hpp"

namespace dist {

inline constexpr std::string_view kPsPrefix = "dist.ps.";

class ParameterService {
 public:
  // `spans`: where each call is written down.
  ParameterService(Memory& memory, SpanLog& spans);
  // Waits for what is under way.
  ~ParameterService();

  // Before the first call.
  ParameterStore& store() noexcept { return store_; }
  // A coordinator has come: what another one left is gone. From any thread.
  void begin_epoch(int64_t epoch) noexcept;

  // Whether the coordinator of this epoch has asked anything of it. From any thread.
  bool used() const noexcept { return used_.load(std::memory_order_relaxed); }

  // `method` is behind kPsPrefix. Never waits.
  void called(Ref<IncomingCall> call) noexcept;

 private:
  struct Item {
    Ref<IncomingCall> call;
    std::string_view method;  // lies in the request
    ValueRef arguments;
    bool heavy = false;
    int64_t came_ns = 0;
    int64_t new_epoch = 0;  // no call, but begin_epoch()
  };

  void add(Item item) noexcept;
  // Does what waits. `here`: this is a thread of the network's, which does no heavy work.
  void drain(bool here) noexcept;
  void run(Item& item) noexcept;
  Status answer(const Item& item, std::span<const int64_t> numbers, Span* span, ValueRef* out);
  Status read(std::span<const int64_t> numbers, ValueRef* out);
  Status rows(const Item& item, std::span<const int64_t> numbers, ValueRef* out);
  Status commit(const Item& item, std::span<const int64_t> numbers, Span* span, ValueRef* out);
  Status snapshot(ValueRef* out);
  bool is_heavy(const Item& item) const noexcept;

  Memory& memory_;
  SpanLog& spans_;
  ParameterStore store_;
  int64_t epoch_ = 0;  // 0: nobody has come
  std::atomic<bool> used_{false};
  std::pmr::vector<ValueRef> snapshot_;

  std::mutex mutex_;
  std::pmr::deque<Item> queue_;
  bool busy_ = false;
};

}  // namespace dist

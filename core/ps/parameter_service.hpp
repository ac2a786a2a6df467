// SPDX-License-Identifier: Apache-2.0
// ParameterService: makes a parameter store available to other processes.
//
// Invariant: calls execute one at a time, in order of arrival. Small calls run on the network thread that
// delivers them; large ones, and those with host functions, run on oneTBB threads.
//
// Each message is a tuple (core/ps/numbers.hpp). Its first number is the epoch, which identifies the
// coordinator: calls from an earlier coordinator are refused.
//
//     dist.ps.create         epoch, number; the value                   returns nothing
//     dist.ps.read           epoch, number ...                          returns a tuple of tensors
//     dist.ps.rows           epoch, number; indices i32 or i64 [k]      returns the tensor [k, rest]
//     dist.ps.commit         epoch, id, watermark, and for each operation what, how, n, n numbers;
//                            a tuple with one value per operation; for an update, the value is a tuple of the
//                            function's name and its arguments          returns 1 if it was applied, else 0
//     dist.ps.snapshot       epoch; keeps the current variables         returns AppliedIds as numbers
//     dist.ps.snapshot_read  epoch, number                              returns the tensor
//     dist.ps.snapshot_end   epoch                                      returns nothing
//     dist.ps.restore        epoch, AppliedIds as numbers               returns nothing
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
#include "core/net/calls.hpp"
#include "core/ps/parameter_store.hpp"
#include "core/trace/spans.hpp"

namespace dist {

inline constexpr std::string_view kPsPrefix = "dist.ps.";

class ParameterService {
 public:
  // `spans`: records each call.
  ParameterService(Memory& memory, SpanLog& spans);
  // Waits for running calls.
  ~ParameterService();

  // Must be used before the first call only.
  ParameterStore& store() noexcept { return store_; }
  // A new coordinator has connected: discards everything of the previous one. Callable from any thread.
  void begin_epoch(int64_t epoch) noexcept;

  // Whether the coordinator of this epoch has made any call. Callable from any thread.
  bool used() const noexcept { return used_.load(std::memory_order_relaxed); }

  // Handles a call; its method follows kPsPrefix. Does not block.
  void called(Ref<IncomingCall> call) noexcept;

 private:
  struct Item {
    Ref<IncomingCall> call;
    std::string_view method;  // points into the request
    ValueRef arguments;
    bool heavy = false;
    int64_t came_ns = 0;
    int64_t new_epoch = 0;  // if set, this is not a call but begin_epoch()
  };

  void add(Item item) noexcept;
  // Executes the queue. `here`: the caller is a network thread, which does no heavy work.
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
  int64_t epoch_ = 0;  // 0: no coordinator yet
  std::atomic<bool> used_{false};
  std::pmr::vector<ValueRef> snapshot_;

  std::mutex mutex_;
  std::pmr::deque<Item> queue_;
  bool busy_ = false;
};

}  // namespace dist

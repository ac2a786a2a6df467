// SPDX-License-Identifier: Apache-2.0
// Closure: what a function on a worker knows of the job while it runs. What it changes goes to the parameter servers when it
// has returned: one message to each, with the closure's number, so that each change happens once, whoever runs it again.
// WorkerJob: what a worker has of the job that its coordinator has told it of.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/base/cancel.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/ps/directory.hpp"
#include "core/ps/pushes.hpp"
#include "core/ps/remote_variables.hpp"
#include "core/trace/spans.hpp"
#include "core/value/value.hpp"

namespace dist {

class Closure;

// A function that workers run: its result in *out_value, a reference that is handed over, or NULL for nothing.
struct ClosureFunction {
  dist_status (*function)(Closure& closure, Value* arguments, Value** out_value, void* host) = nullptr;
  void* host = nullptr;
  void (*end)(void* host) = nullptr;  // when the function is no more; may be NULL
};

class WorkerJob final : public Counted {
 public:
  WorkerJob(Memory& memory, int64_t epoch, int32_t worker);

  const int64_t epoch;
  const int32_t worker;  // this one's number
  Directory directory;
  RemoteVariables variables;
  std::atomic<int64_t> num_closures{0};  // that have begun here

  // A cached value that is at most `variable.max_staleness` closures old at closure `now` of this worker.
  bool cached(const RemoteVariable& variable, int64_t now, ValueRef* out);
  void cache(const RemoteVariable& variable, int64_t now, const ValueRef& value);

  // What create_per_worker has made here.
  void keep(std::string_view name, ValueRef value);
  Status kept(std::string_view name, ValueRef* out);

 private:
  struct Cached {
    ValueRef value;
    int64_t at;
  };
  ~WorkerJob() override = default;

  std::mutex mutex_;
  std::pmr::unordered_map<int64_t, Cached> cache_;
  std::pmr::map<std::pmr::string, ValueRef, std::less<>> kept_;
};

class Closure {
 public:
  // `pushes`: whether it may change variables. `spans`: where what it does on parameter servers is written down, on a row.
  Closure(WorkerJob& job, int64_t id, const char* name, Cancel& cancel, bool pushes, SpanLog& spans, int row);

  int64_t id() const noexcept { return id_; }
  int32_t worker() const noexcept { return job_.worker; }
  const char* name() const noexcept { return name_; }
  Cancel& cancel() const noexcept { return cancel_; }
  Memory& memory() const noexcept { return job_.memory(); }

  Status read(std::span<const char* const> names, std::span<ValueRef> out);
  Status rows(const char* name, Value& indices, ValueRef* out);
  Status assign(const char* name, int32_t how, Value& value);
  Status scatter(const char* name, int32_t how, Value& slices);
  Status update(const char* function, std::span<const char* const> names, Value* arguments);
  Status per_worker(const char* name, ValueRef* out) { return job_.kept(name, out); }

  // What it changes, to all parameter servers.
  Status commit(int64_t mark);
  // A parameter server that could not be reached, or kNoServer.
  int32_t lost_server() const noexcept { return lost_; }

 private:
  Status check_pushes(const char* name) const noexcept;
  // Asks parameter servers: a span, and remembers a server that could not be reached.
  template <class Ask>
  Status ask(const char* what, Cancel* cancel, const Ask& ask);

  WorkerJob& job_;
  const int64_t id_;
  const char* const name_;
  Cancel& cancel_;
  const bool may_push_;
  const int64_t number_;  // which closure of this worker it is
  SpanLog& spans_;
  const int32_t row_;
  Pushes pushes_;
  int32_t lost_ = kNoServer;
};

}  // namespace dist

// SPDX-License-Identifier: Apache-2.0
// Closure: the job as seen by a function that runs on a worker. WorkerJob: the job as seen by the worker.
//
// Invariant: the closure's changes are sent to the parameter servers only when its function has returned: one
// message to each, with the closure's number. So each change is applied once, even if another worker runs the
// closure again.
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

// A function that workers run. It passes the ownership of *out_value to the caller; NULL: no result.
struct ClosureFunction {
  dist_status (*function)(Closure& closure, Value* arguments, Value** out_value, void* host) = nullptr;
  void* host = nullptr;
  void (*end)(void* host) = nullptr;  // called when the function is removed; may be NULL
};

class WorkerJob final : public Counted {
 public:
  WorkerJob(Memory& memory, int64_t epoch, int32_t worker);

  const int64_t epoch;
  const int32_t worker;  // number of this worker
  Directory directory;
  RemoteVariables variables;
  std::atomic<int64_t> num_closures{0};  // that have started here

  // Finds a cached value that is at most `variable.max_staleness` closures old at closure `now` of this
  // worker.
  bool cached(const RemoteVariable& variable, int64_t now, ValueRef* out);
  void cache(const RemoteVariable& variable, int64_t now, const ValueRef& value);

  // The values of create_per_worker().
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
  // `pushes`: whether it may change variables. `spans`: records its calls to parameter servers, on the given
  // row.
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

  // Sends the changes to all affected parameter servers.
  Status commit(int64_t watermark);
  // A parameter server that could not be reached, or kNoServer.
  int32_t lost_server() const noexcept { return lost_; }

 private:
  Status check_pushes(const char* name) const noexcept;
  // Calls parameter servers: records a span, and remembers a server that could not be reached.
  template <class Ask>
  Status ask(const char* what, Cancel* cancel, const Ask& ask);

  WorkerJob& job_;
  const int64_t id_;
  const char* const name_;
  Cancel& cancel_;
  const bool may_push_;
  const int64_t number_;  // counts the closures of this worker
  SpanLog& spans_;
  const int32_t row_;
  Pushes pushes_;
  int32_t lost_ = kNoServer;
};

}  // namespace dist

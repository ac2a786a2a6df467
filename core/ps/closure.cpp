// SPDX-License-Identifier: Apache-2.0
#include "core/ps/closure.hpp"

#include <utility>
#include <vector>

#include "core/base/os/clock.hpp"
#include "core/base/text.hpp"

namespace dist {

// ---- WorkerJob ----

WorkerJob::WorkerJob(Memory& memory, int64_t job_epoch, int32_t number)
    : Counted(memory),
      epoch(job_epoch),
      worker(number),
      directory(memory),
      variables(memory, job_epoch),
      cache_(&memory),
      kept_(&memory) {}

bool WorkerJob::cached(const RemoteVariable& variable, int64_t now, ValueRef* out) {
  if (variable.max_staleness == 0) return false;
  const std::scoped_lock lock(mutex_);
  const auto found = cache_.find(variable.index);
  if (found == cache_.end() || now - found->second.at > variable.max_staleness) return false;
  *out = found->second.value;
  return true;
}

void WorkerJob::cache(const RemoteVariable& variable, int64_t now, const ValueRef& value) {
  if (variable.max_staleness == 0) return;
  const std::scoped_lock lock(mutex_);
  cache_.insert_or_assign(variable.index, Cached{value, now});
}

void WorkerJob::keep(std::string_view name, ValueRef value) {
  const std::scoped_lock lock(mutex_);
  kept_.insert_or_assign(std::pmr::string(name, &memory()), std::move(value));
}

Status WorkerJob::kept(std::string_view name, ValueRef* out) {
  const std::scoped_lock lock(mutex_);
  const auto found = kept_.find(name);
  if (found == kept_.end()) {
    return fail(DIST_NOT_FOUND, "worker %d has no per-worker value \"%s\"", worker,
                Shown(std::string(name).c_str()).c_str());
  }
  *out = found->second;
  return kOk;
}

// ---- Closure ----

Closure::Closure(WorkerJob& job, int64_t id, const char* name, Cancel& cancel, bool pushes, SpanLog& spans,
                 int row)
    : job_(job),
      id_(id),
      name_(name),
      cancel_(cancel),
      may_push_(pushes),
      number_(job.num_closures.fetch_add(1, std::memory_order_relaxed)),
      spans_(spans),
      row_(row),
      pushes_(job.memory(), job.variables.num_servers()) {}

template <class Ask>
Status Closure::ask(const char* what, Cancel* cancel, const Ask& ask) {
  Span span{.category = "ps", .id = id_, .row = row_, .begin_ns = steady_now_ns()};
  span.set_name(what);
  RemoteWait wait{-1, cancel};
  const Status status = spans_.end(&span, ask(&wait));
  if (wait.lost != kNoServer) lost_ = wait.lost;
  return status;
}

Status Closure::read(std::span<const char* const> names, std::span<ValueRef> out) {
  std::pmr::vector<const RemoteVariable*> asked(&memory());
  std::pmr::vector<std::size_t> places(&memory());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const RemoteVariable* variable = nullptr;
    DIST_TRY(job_.directory.find(names[i], &variable));
    if (job_.cached(*variable, number_, &out[i])) continue;
    asked.push_back(variable);
    places.push_back(i);
  }
  if (asked.empty()) return kOk;
  std::pmr::vector<ValueRef> values(asked.size(), &memory());
  DIST_TRY(ask("read", &cancel_, [&](RemoteWait* wait) { return job_.variables.read(asked, wait, values); }));
  for (std::size_t i = 0; i < values.size(); ++i) {
    job_.cache(*asked[i], number_, values[i]);
    out[places[i]] = std::move(values[i]);
  }
  return kOk;
}

Status Closure::rows(const char* name, Value& indices, ValueRef* out) {
  const RemoteVariable* variable = nullptr;
  DIST_TRY(job_.directory.find(name, &variable));
  return ask("rows", &cancel_,
             [&](RemoteWait* wait) { return job_.variables.rows(*variable, indices, wait, out); });
}

Status Closure::check_pushes(const char* name) const noexcept {
  if (may_push_) return kOk;
  return failed_precondition(
      "variable \"%s\": a function that creates a per-worker value must not change variables, because it "
      "runs again on each worker that returns. Change variables in closures.",
      Shown(name).c_str());
}

Status Closure::assign(const char* name, int32_t how, Value& value) {
  const RemoteVariable* variable = nullptr;
  DIST_TRY(job_.directory.find(name, &variable));
  DIST_TRY(check_pushes(name));
  return pushes_.assign(*variable, how, value);
}

Status Closure::scatter(const char* name, int32_t how, Value& slices) {
  const RemoteVariable* variable = nullptr;
  DIST_TRY(job_.directory.find(name, &variable));
  DIST_TRY(check_pushes(name));
  return pushes_.scatter(*variable, how, slices);
}

Status Closure::update(const char* function, std::span<const char* const> names, Value* arguments) {
  std::pmr::vector<const RemoteVariable*> variables(names.size(), &memory());
  for (std::size_t i = 0; i < names.size(); ++i) DIST_TRY(job_.directory.find(names[i], &variables[i]));
  DIST_TRY(check_pushes(names[0]));
  return pushes_.update(function, variables, arguments);
}

Status Closure::commit(int64_t watermark) {
  // A commit that has begun cannot be cancelled.
  return ask("commit", nullptr,
             [&](RemoteWait* wait) { return job_.variables.commit(pushes_, id_, watermark, wait); });
}

}  // namespace dist

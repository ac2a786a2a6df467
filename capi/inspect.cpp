// SPDX-License-Identifier: Apache-2.0
// inspect.h: descriptions, traces and metrics.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "capi/coordinator.hpp"
#include "capi/dataset.hpp"
#include "capi/guard.hpp"
#include "capi/options.hpp"
#include "core/cross_replica/drift.hpp"
#include "core/input/explain.hpp"
#include "core/kernel/targets.hpp"
#include "core/ps/write_metrics.hpp"
#include "core/serve/write_metrics.hpp"
#include "core/strategy/between_runs.hpp"
#include "core/strategy/explain.hpp"
#include "core/strategy/scope.hpp"
#include "core/trace/chrome_trace.hpp"
#include "core/trace/metrics.hpp"
#include "core/trace/stragglers.hpp"
#include "core/value/describe.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

#define DIST_TEXT_OF(number) #number
#define DIST_VERSION_TEXT(major, minor, patch) \
  DIST_TEXT_OF(major) "." DIST_TEXT_OF(minor) "." DIST_TEXT_OF(patch)
constexpr const char* kVersion =
    DIST_VERSION_TEXT(DIST_VERSION_MAJOR, DIST_VERSION_MINOR, DIST_VERSION_PATCH);

// The common checks of all functions that take a strategy.
Status check(dist_strategy* strategy, const char* call) noexcept {
  DIST_TRY(require(strategy, call, "strategy"));
  return unwrap(strategy).check_process();
}

// Makes the checks, and calls `body` with the strategy and the output.
template <class Body>
dist_status write(dist_strategy* strategy, dist_text_fn fn, void* user_data, const char* call, Body&& body) {
  return guard(
      [&]() -> Status {
        DIST_TRY(check(strategy, call));
        if (fn == nullptr) return invalid_argument("`%s()`: `fn` is `NULL`", call);
        const CallInProgress here(unwrap(strategy), call);
        TextOut out(fn, user_data);
        body(unwrap(strategy), out);
        out.flush();
        return kOk;
      },
      call);
}

dist_straggler to_public(const Straggler& row) noexcept {
  dist_straggler out{};
  out.collective = static_cast<dist_collective>(row.collective);
  out.group = std::max(row.group, 0);  // negative: not a group of the host
  out.replica = number(row.replica);
  out.worker = row.worker;
  out.rounds = row.rounds;
  out.times_last = row.times_last;
  out.mean_late_ns = row.mean_late_ns();
  out.max_late_ns = row.max_late_ns;
  std::memcpy(out.tag, row.tag, sizeof out.tag);
  return out;
}

}  // namespace

dist_status dist_strategy_write_trace(dist_strategy* strategy, dist_text_fn fn, void* user_data) {
  return write(strategy, fn, user_data, "dist_strategy_write_trace", [](Strategy& self, TextOut& out) {
    std::pmr::vector<SpanTrace> beside(&self.memory());
    if (const Ref<Coordinator> coordinator = coordinator_of(self)) beside.push_back(coordinator->trace());
    write_chrome_trace(Snapshot(self.recorder(), self.memory()), beside, out);
  });
}

dist_status dist_strategy_write_metrics(dist_strategy* strategy, const char* name, dist_text_fn fn,
                                        void* user_data) {
  return write(strategy, fn, user_data, "dist_strategy_write_metrics", [&](Strategy& self, TextOut& out) {
    write_metrics(self.recorder(), {name, kVersion, kernel_targets()[0], self.memory().held()}, out);
    if (const Ref<Coordinator> coordinator = coordinator_of(self)) {
      write_metrics(coordinator->numbers(), name, out);
    }
    if (Instances* const instances = self.known_instances(); instances != nullptr)
      write_metrics(*instances, self.recorder(), name, out);
  });
}

dist_status dist_strategy_explain(dist_strategy* strategy, dist_text_fn fn, void* user_data) {
  return write(strategy, fn, user_data, "dist_strategy_explain", [](Strategy& self, TextOut& out) {
    out.add("libdist %s: ", kVersion);
    explain(self, out);
  });
}

dist_status dist_strategy_stragglers(dist_strategy* strategy, dist_straggler* out, size_t row_bytes,
                                     size_t capacity, size_t* out_n) {
  return guard([&]() -> Status {
    DIST_TRY(check(strategy, "dist_strategy_stragglers"));
    DIST_TRY(require(out_n, "dist_strategy_stragglers", "out_n"));
    if (capacity != 0) {
      DIST_TRY(require(out, "dist_strategy_stragglers", "out"));
      DIST_TRY(check_list(out, capacity, most_of<char>() / std::max<size_t>(row_bytes, 1),
                          "dist_strategy_stragglers", "out", "capacity"));
      if (row_bytes < sizeof(int64_t) || row_bytes > kMostOptionBytes) {
        return invalid_argument(
            "`dist_strategy_stragglers()`: `row_bytes` is %zu, but must be sizeof(`dist_straggler`)",
            row_bytes);
      }
    }
    Strategy& self = unwrap(strategy);
    const Snapshot snapshot(self.recorder(), self.memory());
    const auto rows = stragglers(snapshot, self.memory());
    for (std::size_t i = 0; i < std::min(capacity, rows.size()); ++i) {
      // Rows of a host with another version: fills in the fields that it knows, and zeros beyond ours.
      const dist_straggler row = to_public(rows[i]);
      char* to = reinterpret_cast<char*>(out) + i * row_bytes;
      std::memset(to, 0, row_bytes);
      std::memcpy(to, &row, std::min(row_bytes, sizeof row));
    }
    *out_n = rows.size();
    return kOk;
  });
}

dist_status dist_dataset_explain(dist_dataset* dataset, dist_text_fn fn, void* user_data) {
  return guard([&]() -> Status {
    DIST_TRY(check_dataset(dataset, "dist_dataset_explain"));
    if (fn == nullptr) return invalid_argument("`dist_dataset_explain()`: `fn` is `NULL`");
    const std::pmr::string text = explain(*unwrap_dataset(dataset));
    fn(text.c_str(), text.size(), user_data);
    return kOk;
  });
}

namespace {

template <class Described>
dist_status describe_to(const Described* what, const char* call, const char* name, dist_text_fn fn,
                        void* user_data) {
  return guard(
      [&]() -> Status {
        DIST_TRY(require(what, call, name));
        if (fn == nullptr) return invalid_argument("`%s()`: `fn` is `NULL`", call);
        TextOut out(fn, user_data);
        describe(*what, out);
        out.flush();
        return kOk;
      },
      call);
}

// The size in the first version, which every caller has.
constexpr std::size_t kDriftBytes = offsetof(dist_drift, element) + sizeof(dist_drift::element);

}  // namespace

dist_status dist_value_describe(const dist_value* value, dist_text_fn fn, void* user_data) {
  return describe_to(unwrap(value), "dist_value_describe", "value", fn, user_data);
}

dist_status dist_variable_describe(const dist_variable* variable, dist_text_fn fn, void* user_data) {
  return describe_to(unwrap(variable), "dist_variable_describe", "variable", fn, user_data);
}

dist_status dist_variable_check_drift(dist_strategy* strategy, dist_variable* variable,
                                      dist_drift* out_drift) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_variable_check_drift", "strategy"));
    DIST_TRY(require(variable, "dist_variable_check_drift", "variable"));
    if (out_drift != nullptr && out_drift->struct_size < kDriftBytes) {
      return invalid_argument("`dist_drift.struct_size` is %u: initialize the struct with `DIST_DRIFT_INIT`",
                              out_drift->struct_size);
    }
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_variable_check_drift"));
    BetweenRuns turn;
    DIST_TRY(turn.begin_among_workers(unwrap(strategy), "dist_variable_check_drift"));
    DIST_TRY(turn.begin(unwrap(strategy), "dist_variable_check_drift"));
    Drift drift;
    const Status status = check_drift(unwrap(strategy).cross_replica(), *unwrap(variable), &drift);
    if (out_drift != nullptr && (status.ok() || status.code() == DIST_DATA_LOSS)) {
      const dist_drift all{0, drift.num_copies, number(drift.replica), number(drift.expected), drift.element};
      DIST_TRY(write_struct(all, out_drift, "dist_drift"));
    }
    return status;
  });
}

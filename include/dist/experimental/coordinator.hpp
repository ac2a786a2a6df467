// SPDX-License-Identifier: Apache-2.0
//
// dist/experimental/coordinator.hpp: closures on workers, and variables on parameter servers (coordinator.h). All of it
// is experimental.
//
//     dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
//     options.kind = DIST_STRATEGY_PARAMETER_SERVER;          // TF_CONFIG lists the servers
//     dist::strategy strategy(options);
//     dist::coordinator coordinator(strategy);
//     coordinator.create_variable("w", zeros);
//     for (int step = 0; step < 1000; ++step) coordinator.schedule("train", batch);
//     coordinator.join();
#ifndef DIST_EXPERIMENTAL_COORDINATOR_HPP
#define DIST_EXPERIMENTAL_COORDINATOR_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../hpp/cancel.hpp"
#include "../hpp/inspect.hpp"
#include "../hpp/strategy.hpp"
#include "../hpp/tensor.hpp"
#include "../hpp/value.hpp"
#include "coordinator.h"
#include "rpc.hpp"
#include "server.hpp"

namespace dist {

// A variable on parameter servers, with the device and the rows of each part.
struct ps_variable {
  struct part {
    std::string device;
    int64_t begin;
    int64_t rows;
  };
  dist_dtype dtype;
  std::vector<int64_t> shape;
  std::vector<part> parts;
};

// Options for creating a variable. By default, the coordinator's partitioner is used and nothing is cached.
struct ps_variable_options {
  int32_t max_staleness = 0;
  std::vector<int64_t> partitions;
  std::string colocate_with;
};

// Owns the coordinator of a strategy. Destroy it before the strategy; this also stops the servers.
class coordinator {
 public:
  // Returns the number of parts for each dimension of a variable of this shape and dtype.
  using partitioner =
      std::function<std::vector<int64_t>(const std::vector<int64_t> &shape, dist_dtype dtype)>;

  explicit coordinator(const strategy_ref &of) {
    check(dist_coordinator_create(of.get(), nullptr, &handle_));
  }
  // If `divide` is set, it replaces options.partitioner and lives as long as this object.
  coordinator(const strategy_ref &of, dist_coordinator_options options, partitioner divide = nullptr) {
    if (divide) {
      divide_ = std::make_unique<partitioner>(std::move(divide));
      options.partitioner = [](const dist_tensor *spec, int64_t *out_partitions, void *user_data) {
        try {
          const std::vector<int64_t> shape(spec->shape, spec->shape + spec->ndim);
          const std::vector<int64_t> parts = (*static_cast<partitioner *>(user_data))(shape, spec->dtype);
          if (parts.size() != shape.size())
            throw error(DIST_INVALID_ARGUMENT, "a partitioner gives a number for each dimension");
          for (std::size_t i = 0; i < parts.size(); ++i) out_partitions[i] = parts[i];
          return dist_status{DIST_OK};
        } catch (...) {
          return detail::status_of_exception();
        }
      };
      options.partitioner_user_data = divide_.get();
    }
    check(dist_coordinator_create(of.get(), &options, &handle_));
  }
  ~coordinator() { dist_coordinator_destroy(handle_); }
  coordinator(coordinator &&other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), divide_(std::move(other.divide_)) {}
  coordinator &operator=(coordinator &&other) noexcept {
    std::swap(handle_, other.handle_);
    divide_.swap(other.divide_);
    return *this;
  }
  coordinator(const coordinator &) = delete;
  coordinator &operator=(const coordinator &) = delete;

  // ---- Variables ----
  void create_variable(const std::string &name, const const_tensor &initial,
                       const ps_variable_options &options = {}) const {
    dist_ps_variable_options how = DIST_PS_VARIABLE_OPTIONS_INIT;
    how.max_staleness = options.max_staleness;
    how.partitions = options.partitions.data();
    how.num_partitions = options.partitions.size();
    if (!options.colocate_with.empty()) how.colocate_with = detail::for_c(options.colocate_with);
    const dist_tensor view = initial.get();
    check(dist_coordinator_create_variable(handle_, detail::for_c(name), &view, &how));
  }
  // In the order of creation.
  std::vector<std::string> variables() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < dist_coordinator_num_variables(handle_); ++i)
      names.emplace_back(dist_coordinator_variable_name(handle_, i));
    return names;
  }
  ps_variable variable(const std::string &name) const {
    dist_tensor spec{};
    int64_t parts = 0;
    check(dist_coordinator_variable_spec(handle_, detail::for_c(name), &spec, &parts));
    ps_variable found{spec.dtype, {spec.shape, spec.shape + spec.ndim}, {}};
    for (int64_t i = 0; i < parts; ++i) {
      const char *device = nullptr;
      ps_variable::part part{{}, 0, 0};
      check(dist_coordinator_variable_part(handle_, name.c_str(), i, &device, &part.begin, &part.rows));
      part.device = device;
      found.parts.push_back(std::move(part));
    }
    return found;
  }
  std::vector<value> read(const std::vector<std::string> &names) const {
    return detail::read_by_name(names, [&](const char *const *texts, std::size_t n, dist_value **out) {
      return dist_coordinator_read(handle_, texts, n, out);
    });
  }
  value read(const std::string &name) const { return read(std::vector<std::string>{name}).front(); }
  value read_rows(const std::string &name, const value &indices) const {
    dist_value *out = nullptr;
    check(dist_coordinator_read_rows(handle_, detail::for_c(name), indices.get(), &out));
    return value::adopt(out);
  }
  void assign(const std::string &name, dist_assign_op how, const value &given) const {
    check(dist_coordinator_assign(handle_, detail::for_c(name), how, given.get()));
  }
  void scatter(const std::string &name, dist_scatter_op how, const value &slices) const {
    check(dist_coordinator_scatter(handle_, detail::for_c(name), how, slices.get()));
  }
  void update(const std::string &function, const std::vector<std::string> &names,
              const value &arguments = {}) const {
    std::vector<const char *> texts;
    for (const std::string &each : names) texts.push_back(detail::for_c(each));
    check(dist_coordinator_update(handle_, detail::for_c(function), texts.data(), texts.size(),
                                  arguments.get()));
  }
  void save(const std::string &path) const { check(dist_coordinator_save(handle_, detail::for_c(path))); }
  // Returns the number of the first closure that had not finished when the checkpoint was saved.
  int64_t restore(const std::string &path) const {
    int64_t mark = 0;
    check(dist_coordinator_restore(handle_, detail::for_c(path), &mark));
    return mark;
  }

  // ---- Closures ----
  remote_value schedule(const std::string &function, const value &arguments = {},
                        const dist_schedule_options *options = nullptr) const {
    dist_remote_value *out = nullptr;
    check(dist_coordinator_schedule(handle_, detail::for_c(function), arguments.get(), options, &out));
    return remote_value::adopt(out);
  }
  // timeout_ns: 0 = does not wait.
  void join(int64_t timeout_ns = DIST_NO_TIMEOUT, const cancel *by = nullptr) const {
    check(dist_coordinator_join(handle_, timeout_ns, by == nullptr ? nullptr : by->get()));
  }
  bool done() const {
    int32_t all = 0;
    check(dist_coordinator_done(handle_, &all));
    return all != 0;
  }
  void create_per_worker(const std::string &name, const std::string &function,
                         const value &arguments = {}) const {
    check(dist_coordinator_create_per_worker(handle_, detail::for_c(name), detail::for_c(function),
                                             arguments.get()));
  }
  dist_coordinator_stats stats() const {
    dist_coordinator_stats now = DIST_COORDINATOR_STATS_INIT;
    check(dist_coordinator_query(handle_, &now));
    return now;
  }
  // A trace in Chrome's trace-event format, for Perfetto.
  std::string write_trace() const {
    return detail::text_of([&](dist_text_fn fn, void *user_data) {
      return dist_coordinator_write_trace(handle_, fn, user_data);
    });
  }
  [[nodiscard]] dist_coordinator *get() const noexcept { return handle_; }

 private:
  dist_coordinator *handle_ = nullptr;
  std::unique_ptr<partitioner> divide_;
};

}  // namespace dist

#endif  // DIST_EXPERIMENTAL_COORDINATOR_HPP

// SPDX-License-Identifier: Apache-2.0
//
// dist/experimental/server.hpp: server.h for C++: parameter servers, and workers that run closures. All of it is
// experimental.
//
//     dist::server server;                                    // the task that TF_CONFIG specifies
//     server.add("train", [](const dist::closure &closure, const dist::value &batch) {
//       closure.assign("w", DIST_ASSIGN_SUB, gradient_of(closure.read("w"), batch));
//       return dist::value();
//     });
//     server.start();
//     server.join();
#ifndef DIST_EXPERIMENTAL_SERVER_HPP
#define DIST_EXPERIMENTAL_SERVER_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../hpp/cancel.hpp"
#include "../hpp/cluster.hpp"
#include "../hpp/tensor.hpp"
#include "../hpp/value.hpp"
#include "server.h"

namespace dist {

namespace detail {
// Reads variables with `read(names, n, out_values)`.
template <class Read>
std::vector<value> read_by_name(const std::vector<std::string> &names, Read &&read) {
  std::vector<const char *> texts;
  for (const std::string &each : names) texts.push_back(for_c(each));
  std::vector<dist_value *> handles(names.size());
  check(read(texts.data(), texts.size(), handles.data()));
  std::vector<value> values;
  values.reserve(handles.size());
  for (dist_value *const each : handles) values.push_back(value::adopt(each));
  return values;
}
}  // namespace detail

// A running closure, for its function.
class closure {
 public:
  explicit closure(dist_closure *handle) noexcept : handle_(handle) {}

  const char *name() const noexcept { return dist_closure_name(handle_); }
  // The number of closures that were scheduled before it.
  int64_t id() const noexcept { return dist_closure_id(handle_); }
  int32_t worker() const noexcept { return dist_closure_worker(handle_); }
  // Whether the result is no longer needed, and the cancel object that is signalled then, for calls in which the
  // function waits.
  bool cancelled() const noexcept { return dist_cancel_signalled(cancel()) != 0; }
  dist_cancel *cancel() const noexcept { return dist_closure_cancel(handle_); }

  std::vector<value> read(const std::vector<std::string> &names) const {
    return detail::read_by_name(names, [&](const char *const *texts, std::size_t n, dist_value **out) {
      return dist_closure_read(handle_, texts, n, out);
    });
  }
  value read(const std::string &variable) const { return read(std::vector<std::string>{variable}).front(); }
  // Reads rows of a variable by indices i32 or i64 [k].
  value read_rows(const std::string &variable, const value &indices) const {
    dist_value *out = nullptr;
    check(dist_closure_read_rows(handle_, detail::for_c(variable), indices.get(), &out));
    return value::adopt(out);
  }
  // The methods that change variables take effect after the closure has succeeded.
  void assign(const std::string &variable, dist_assign_op how, const value &given) const {
    check(dist_closure_assign(handle_, detail::for_c(variable), how, given.get()));
  }
  void scatter(const std::string &variable, dist_scatter_op how, const value &slices) const {
    check(dist_closure_scatter(handle_, detail::for_c(variable), how, slices.get()));
  }
  void update(const std::string &function, const std::vector<std::string> &variables,
              const value &arguments = {}) const {
    std::vector<const char *> texts;
    for (const std::string &each : variables) texts.push_back(detail::for_c(each));
    check(dist_closure_update(handle_, detail::for_c(function), texts.data(), texts.size(), arguments.get()));
  }
  // The value that coordinator::create_per_worker() created on this worker.
  value per_worker(const std::string &name) const {
    dist_value *out = nullptr;
    check(dist_closure_per_worker(handle_, detail::for_c(name), &out));
    return value::adopt(out);
  }
  [[nodiscard]] dist_closure *get() const noexcept { return handle_; }

 private:
  dist_closure *handle_;
};

// A task to which a coordinator sends work.
class server {
 public:
  // The task that TF_CONFIG specifies.
  server() { check(dist_server_create(nullptr, nullptr, DIST_TASK_UNSET, nullptr, &handle_)); }
  explicit server(const dist_server_options &options) {
    check(dist_server_create(nullptr, nullptr, DIST_TASK_UNSET, &options, &handle_));
  }
  server(const cluster_spec &cluster, const std::string &job, int32_t index,
         const dist_server_options *options = nullptr) {
    check(dist_server_create(cluster.get(), detail::for_c(job), index, options, &handle_));
  }
  // On 127.0.0.1, for experiments.
  static server local(const dist_server_options *options = nullptr) {
    server made(nullptr);
    check(dist_server_create_local(options, &made.handle_));
    return made;
  }
  // Must not be called inside one of its closures.
  ~server() {
    if (dist_server_destroy(handle_) != DIST_OK) {
    }
  }
  server(server &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  server &operator=(server &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  server(const server &) = delete;
  server &operator=(const server &) = delete;

  // fn(const closure &, const value &arguments) returns the result or throws; the coordinator receives the code and
  // text of the error. It is kept until the server is destroyed.
  template <class Fn>
  void add(const std::string &name, Fn &&fn) {
    using held = std::decay_t<Fn>;
    auto kept = std::make_unique<held>(std::forward<Fn>(fn));
    check(dist_server_register(
        handle_, detail::for_c(name),
        [](dist_closure *of, dist_value *arguments, dist_value **out, void *user_data) {
          try {
            *out = value((*static_cast<held *>(user_data))(closure(of), value::share(arguments))).release();
            return dist_status{DIST_OK};
          } catch (...) {
            return detail::status_of_exception();
          }
        },
        kept.get(), [](void *user_data) { delete static_cast<held *>(user_data); }));
    (void)kept.release();  // now owned by the server
  }
  // fn(std::vector<tensor> &variables, const value &arguments) writes the variables' elements. If it throws, nothing
  // changes on this server. It is kept until the server is destroyed.
  template <class Fn>
  void add_update(const std::string &name, Fn &&fn) {
    using held = std::decay_t<Fn>;
    auto kept = std::make_unique<held>(std::forward<Fn>(fn));
    check(dist_server_register_update(
        handle_, detail::for_c(name),
        [](dist_tensor *variables, std::size_t n, dist_value *arguments, void *user_data) {
          try {
            std::vector<tensor> views;
            views.reserve(n);
            for (std::size_t i = 0; i < n; ++i) views.emplace_back(variables[i]);
            (*static_cast<held *>(user_data))(views, value::share(arguments));
            return dist_status{DIST_OK};
          } catch (...) {
            return detail::status_of_exception();
          }
        },
        kept.get(), [](void *user_data) { delete static_cast<held *>(user_data); }));
    (void)kept.release();  // now owned by the server
  }
  void start() const { check(dist_server_start(handle_)); }
  // "grpc://host:port", with the port that the system has chosen.
  std::string target() const { return dist_server_target(handle_); }
  // Waits until its coordinator ends, or stop() is called.
  void join(int64_t timeout_ns = DIST_NO_TIMEOUT, const cancel *by = nullptr) const {
    check(dist_server_join(handle_, timeout_ns, by == nullptr ? nullptr : by->get()));
  }
  void stop() const noexcept { dist_server_stop(handle_); }
  // A trace of what it has done, in Chrome's trace-event format, for Perfetto.
  std::string write_trace() const {
    return detail::text_of(
        [&](dist_text_fn fn, void *user_data) { return dist_server_write_trace(handle_, fn, user_data); });
  }
  [[nodiscard]] dist_server *get() const noexcept { return handle_; }

 private:
  explicit server(std::nullptr_t) noexcept {}

  dist_server *handle_ = nullptr;
};

}  // namespace dist

#endif  // DIST_EXPERIMENTAL_SERVER_HPP

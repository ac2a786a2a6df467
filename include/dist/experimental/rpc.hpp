// SPDX-License-Identifier: Apache-2.0
//
// dist/experimental/rpc.hpp: rpc.h for C++: remote procedure calls. All of it is experimental.
//
//     dist::rpc_server server("127.0.0.1:29600");
//     server.add("twice", [](const dist::rpc_call &, const dist::value &given) { return twice(given); });
//     server.start();
//
//     dist::rpc_client client("127.0.0.1:29600");      // in another process
//     dist::value result = client.call("twice", given);
#ifndef DIST_EXPERIMENTAL_RPC_HPP
#define DIST_EXPERIMENTAL_RPC_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../hpp/value.hpp"
#include "rpc.h"

namespace dist {

// The future result of a call. fetch() waits for it and throws its error; get() returns the C handle. Releasing the
// last reference cancels the call.
class remote_value {
 public:
  remote_value() noexcept = default;
  // Takes a reference.
  static remote_value adopt(dist_remote_value *handle) noexcept {
    remote_value owned;
    owned.handle_ = handle;
    return owned;
  }
  ~remote_value() { dist_remote_value_release(handle_); }
  remote_value(const remote_value &other) noexcept : handle_(dist_remote_value_retain(other.handle_)) {}
  remote_value(remote_value &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  remote_value &operator=(remote_value other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  // Waits and returns the value or throws the error, the same each time. DIST_NO_TIMEOUT: as long as the call may take.
  value fetch(int64_t timeout_ns = DIST_NO_TIMEOUT) const {
    dist_value *out = nullptr;
    check(dist_remote_value_get(handle_, timeout_ns, &out));
    return value::adopt(out);
  }
  bool ready() const noexcept { return dist_remote_value_ready(handle_) != 0; }
  void cancel() const noexcept { dist_remote_value_cancel(handle_); }
  [[nodiscard]] dist_remote_value *get() const noexcept { return handle_; }

 private:
  dist_remote_value *handle_ = nullptr;
};

// Information about a call, for its method; valid during the call.
class rpc_call {
 public:
  explicit rpc_call(const dist_rpc_context &context) noexcept : context_(&context) {}
  const char *method() const noexcept { return context_->method; }
  // How long the client waits in total; 0 = no limit.
  int64_t timeout_ns() const noexcept { return context_->timeout_ns; }
  // Whether the result is no longer needed, and the cancel object that is signalled then, for calls in which the method
  // waits.
  bool cancelled() const noexcept { return dist_cancel_signalled(context_->cancel) != 0; }
  dist_cancel *cancel() const noexcept { return context_->cancel; }

 private:
  const dist_rpc_context *context_;
};

// Offers methods to clients.
class rpc_server {
 public:
  explicit rpc_server(const std::string &address) {
    check(dist_rpc_server_create(nullptr, detail::for_c(address), nullptr, &handle_));
  }
  rpc_server(const std::string &address, const dist_rpc_server_options &options) {
    check(dist_rpc_server_create(nullptr, detail::for_c(address), &options, &handle_));
  }
  // Must not be called inside one of its methods.
  ~rpc_server() {
    if (dist_rpc_server_destroy(handle_) != DIST_OK) {
    }
  }
  rpc_server(rpc_server &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  rpc_server &operator=(rpc_server &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  rpc_server(const rpc_server &) = delete;
  rpc_server &operator=(const rpc_server &) = delete;

  // fn(const rpc_call &, const value &) returns the result or throws; the client receives the code and text of the
  // error. It is kept until the server is destroyed, and called from several threads concurrently.
  template <class Fn>
  void add(const std::string &method, Fn &&fn) {
    using held = std::decay_t<Fn>;
    auto kept = std::make_unique<held>(std::forward<Fn>(fn));
    check(dist_rpc_server_register(
        handle_, detail::for_c(method),
        [](const dist_rpc_context *context, dist_value *arguments, dist_value **out, void *user_data) {
          try {
            *out = value((*static_cast<held *>(user_data))(rpc_call(*context), value::share(arguments)))
                       .release();
            return dist_status{DIST_OK};
          } catch (...) {
            return detail::status_of_exception();
          }
        },
        kept.get(), [](void *user_data) { delete static_cast<held *>(user_data); }));
    (void)kept.release();  // now owned by the server
  }
  void start() const { check(dist_rpc_server_start(handle_)); }
  // The address for clients, with the port that the system has chosen.
  std::string address() const { return dist_rpc_server_address(handle_); }
  [[nodiscard]] dist_rpc_server *get() const noexcept { return handle_; }

 private:
  dist_rpc_server *handle_ = nullptr;
};

// Calls the methods of a server, which need not exist yet.
class rpc_client {
 public:
  explicit rpc_client(const std::string &address) {
    check(dist_rpc_client_create(nullptr, detail::for_c(address), nullptr, &handle_));
  }
  rpc_client(const std::string &address, const dist_rpc_client_options &options) {
    check(dist_rpc_client_create(nullptr, detail::for_c(address), &options, &handle_));
  }
  ~rpc_client() { dist_rpc_client_destroy(handle_); }
  rpc_client(rpc_client &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  rpc_client &operator=(rpc_client &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  rpc_client(const rpc_client &) = delete;
  rpc_client &operator=(const rpc_client &) = delete;

  // Waits for the method's result. No arguments: NONE.
  value call(const std::string &method, const value &arguments = {},
             const dist_rpc_call_options *options = nullptr) const {
    dist_value *out = nullptr;
    check(dist_rpc_call(handle_, detail::for_c(method), arguments.get(), options, &out));
    return value::adopt(out);
  }
  remote_value begin(const std::string &method, const value &arguments = {},
                     const dist_rpc_call_options *options = nullptr) const {
    dist_remote_value *out = nullptr;
    check(dist_rpc_begin(handle_, detail::for_c(method), arguments.get(), options, &out));
    return remote_value::adopt(out);
  }
  // The names of the server's methods, sorted.
  std::vector<std::string> methods(const dist_rpc_call_options *options = nullptr) const {
    dist_value *out = nullptr;
    check(dist_rpc_client_methods(handle_, options, &out));
    const value names = value::adopt(out);
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < dist_value_size(out); ++i)
      texts.emplace_back(dist_value_text(dist_value_item(out, i)));
    return texts;
  }
  [[nodiscard]] dist_rpc_client *get() const noexcept { return handle_; }

 private:
  dist_rpc_client *handle_ = nullptr;
};

}  // namespace dist

#endif  // DIST_EXPERIMENTAL_RPC_HPP

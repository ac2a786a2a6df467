// SPDX-License-Identifier: Apache-2.0
// Connection: one connection of the link module "gloo" (dist/experimental/links.h). Each connection has a
// Gloo context with two ranks, so a failure affects only this connection.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/net/gloo/guarded.hpp"
#include "dist/experimental/links.h"

namespace dist::gloo_link {

// What the connections of one worker share: a device for each address.
class Module {
 public:
  explicit Module(const dist_link_module_options& options) noexcept
      : callbacks_(*options.callbacks), lease_ns_(options.lease_ns) {}
  // Returns the device that listens on this address. Throws Gloo's exceptions and std::bad_alloc.
  std::shared_ptr<GuardedDevice> device(const std::string& host);
  const dist_link_callbacks& callbacks() const noexcept { return callbacks_; }
  int64_t lease_ns() const noexcept { return lease_ns_; }

 private:
  const dist_link_callbacks& callbacks_;
  const int64_t lease_ns_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<GuardedDevice>> devices_;  // by the IP address on which they listen
};

// The member functions implement those of dist_link_functions with the same names.
class Connection final : private ConnectionUser, private GuardedDevice::Job {
 public:
  // Listens. Throws Gloo's exceptions and std::bad_alloc.
  Connection(Module& module, const dist_link_options& options);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  std::vector<char> address() const { return pair_->address().bytes(); }
  void connect(const char* address, std::size_t bytes);
  std::ptrdiff_t write(const dist_link_block* blocks, std::size_t n) noexcept;
  std::ptrdiff_t read(const dist_link_block* blocks, std::size_t n) noexcept;
  void cut() noexcept;

 private:
  void ready() noexcept override { callbacks_.ready(link_); }
  void closed() noexcept override { device_->post(*this); }
  void run() noexcept override;

  const dist_link_callbacks& callbacks_;
  dist_link* const link_;
  const std::shared_ptr<GuardedDevice> device_;
  std::shared_ptr<gloo::transport::tcp::Context> context_;
  std::unique_ptr<GuardedPair> pair_;
  std::atomic<bool> cut_{false};

  std::mutex mutex_;
  std::condition_variable changed_;
  bool started_ = false;
  bool ended_ = false;  // the callback has returned
  std::vector<char> peer_;
  bool begun_ = false;    // only Gloo's thread uses this and the next member
  bool telling_ = false;  // ended() is being called or has been called
};

}  // namespace dist::gloo_link

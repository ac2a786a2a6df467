// SPDX-License-Identifier: Apache-2.0
#include "core/net/gloo/connection.hpp"

#include <gloo/common/error.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <span>
#include <utility>

#include "core/base/os/thread.hpp"

namespace dist::gloo_link {

std::shared_ptr<GuardedDevice> Module::device(const std::string& host) {
  const std::scoped_lock lock(mutex_);
  std::shared_ptr<GuardedDevice>& known = devices_[host];
  // The device starts a thread.
  const AsyncSignalsBlocked blocked;
  if (known == nullptr) known = std::make_shared<GuardedDevice>(host);
  return known;
}

Connection::Connection(Module& module, const dist_link_options& options)
    : callbacks_(module.callbacks()), link_(options.link), device_(module.device(options.host)) {
  using std::chrono::milliseconds;
  const int me = options.initiates != 0 ? 0 : 1;
  const milliseconds lease(std::max<int64_t>(1, module.lease_ns() / 1'000'000));
  context_ = std::make_shared<gloo::transport::tcp::Context>(device_->get(), me, 2);
  // Gloo's constructor already listens, and a peer may connect at once. The constructor runs on Gloo's
  // thread, so that this connection is handled only when the object is complete.
  ConnectionUser& user = *this;
  device_->run(
      [&] { pair_ = std::make_unique<GuardedPair>(*context_, *device_->get(), 1 - me, lease, user); });
}

Connection::~Connection() {
  cut();
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ || !started_; });
  }
  try {
    device_->run([&] { pair_->end(); });
  } catch (...) {
    // end() does not throw.
  }
}

void Connection::connect(const char* address, std::size_t bytes) {
  {
    const std::scoped_lock lock(mutex_);
    started_ = true;
    peer_.assign(address, address + bytes);
  }
  device_->post(*this);
}

void Connection::cut() noexcept {
  if (!cut_.exchange(true)) device_->post(*this);
}

// Runs on Gloo's thread.
void Connection::run() noexcept {
  std::vector<char> peer;
  bool started;
  {
    const std::scoped_lock lock(mutex_);
    started = started_;
    peer.swap(peer_);
  }
  std::string why;
  if (started && !std::exchange(begun_, true) && !cut_) {
    try {
      pair_->begin(peer);
      callbacks_.ready(link_);  // the peer may have connected already
    } catch (const std::exception& error) {
      why = error.what();
      pair_->end();
    }
  }
  if (cut_) pair_->end();
  if (!started || !pair_->ended() || std::exchange(telling_, true)) return;
  callbacks_.ended(link_, why.c_str());
  const std::scoped_lock lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

std::ptrdiff_t Connection::write(const dist_link_block* blocks, std::size_t n) noexcept {
  std::array<std::span<const std::byte>, DIST_LINK_MAX_BLOCKS> parts;
  for (std::size_t i = 0; i < n; ++i)
    parts[i] = {static_cast<const std::byte*>(blocks[i].data), blocks[i].size_bytes};
  return pair_->write_now({parts.data(), n});
}

std::ptrdiff_t Connection::read(const dist_link_block* blocks, std::size_t n) noexcept {
  std::array<std::span<std::byte>, DIST_LINK_MAX_BLOCKS> parts;
  for (std::size_t i = 0; i < n; ++i)
    parts[i] = {static_cast<std::byte*>(blocks[i].data), blocks[i].size_bytes};
  return pair_->read_now({parts.data(), n});
}

}  // namespace dist::gloo_link

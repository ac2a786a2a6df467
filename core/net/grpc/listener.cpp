// SPDX-License-Identifier: Apache-2.0
#include "core/net/grpc/listener.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <span>
#include <utility>

#include "core/base/os/clock.hpp"
#include "core/base/os/socket.hpp"
#include "core/net/grpc/link.hpp"
#include "core/net/grpc/listening.hpp"

namespace dist::grpc_link {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kTokenWithinNs = 5'000 * kMs;
// A newcomer is not removed before this time to make room for another one.
constexpr int64_t kKeepsPlaceNs = 20 * kMs;
// The interval at which connections in either stage are checked.
constexpr int kTickMs = 20;
constexpr int64_t kNoDescriptorNs = 50 * kMs;
constexpr int kMostAcceptedAtOnce = 64;

void send_text(const Descriptor& socket, std::string_view text) noexcept {
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  (void)send_now(socket.number(), {&part, 1});
}

// gRPC escapes some characters, and appends the interface to some addresses.
std::string plain_peer(std::string_view peer) {
  std::string text;
  bool skips = false;
  for (std::size_t i = 0; i < peer.size(); ++i) {
    char each = peer[i];
    if (each == '%' && i + 2 < peer.size()) {
      const std::string_view digits = peer.substr(i + 1, 2);
      if (digits == "5B" || digits == "5b") each = '[', i += 2;
      if (digits == "5D" || digits == "5d") each = ']', i += 2;
    }
    if (each == '%') skips = true;
    if (each == ']') skips = false;
    if (!skips) text += each;
  }
  return text;
}

}  // namespace

std::string Listener::listen(const Config& config, const std::vector<std::string>& addresses,
                             grpc::ServerBuilder& builder) {
  if (std::string why = open(config, addresses); !why.empty()) return why;
  secret_ = config.secret;
  prove_within_ns_ = config.scaled_ns(prove_within_ns(config.lease_ns));
  token_within_ns_ = config.scaled_ns(kTokenWithinNs);
  most_newcomers_ = std::clamp<std::size_t>(descriptor_limit() / 8, 8, 128);
  most_unproven_ = std::clamp<std::size_t>(descriptor_limit() / 8, 16, 256);
  acceptor_ = configure(config, builder);
  return "";
}

std::string Listener::open(const Config& config, const std::vector<std::string>& addresses) {
  for (const int each : config.sockets) {
    listening_.sockets.push_back(duplicate(each));
    if (!listening_.sockets.back().is_open())
      return cannot_listen(config, "the system cannot open another descriptor");
  }
  if (!listening_.sockets.empty()) {
    listening_.port = std::atoi(port_of(addresses.front()).c_str());
    return "";
  }
  std::vector<std::string> hosts;
  for (const std::string& each : addresses) hosts.push_back(host_of(each));
  listening_ = listen_on(hosts, port_of(addresses.front()),
                         static_cast<int>(std::max<int64_t>(config.lease_ns / kMs, 1)));
  return listening_.sockets.empty() ? cannot_listen(config, listening_.why) : "";
}

bool Listener::start() {
  spare_ = spare_descriptor();
  if (!spare_.is_open() || !wakes_.open().ok()) return false;
  due_ns_ = steady_now_ns();
  if (!thread_.start(main, this).ok()) return false;
  thread_.name("dist-listen");
  return true;
}

void Listener::stop() noexcept {
  stopping_ = true;
  if (wakes_.is_open()) wakes_.set();
  thread_.join();
  listening_.sockets.clear();
  newcomers_.clear();
  const std::scoped_lock lock(mutex_);
  unproven_.clear();
}

void Listener::proven(const std::string& peer) noexcept {
  try {
    const std::string plain = plain_peer(peer);
    const std::scoped_lock lock(mutex_);
    std::erase_if(unproven_, [&](const Unproven& each) { return each.peer == plain; });
  } catch (const std::bad_alloc&) {
    // The peer's name cannot be compared, and its connection must no longer be limited, so all unproven ones
    // are forgotten.
    const std::scoped_lock lock(mutex_);
    unproven_.clear();
  }
}

std::size_t Listener::num_unproven() noexcept {
  const std::scoped_lock lock(mutex_);
  return unproven_.size();
}

void* Listener::main(void* self) {
  block_async_signals();
  static_cast<Listener*>(self)->run();
  return nullptr;
}

void Listener::run() noexcept {
  while (!stopping_) {
    try {
      turn();
    } catch (const std::bad_alloc&) {
      newcomers_.clear();
    }
  }
}

// Whether another newcomer can be accepted, if necessary in place of the oldest one.
bool Listener::has_room(int64_t now) const noexcept {
  if (now < accept_again_ns_) return false;
  return newcomers_.size() < most_newcomers_ || now - newcomers_.front()->since_ns >= kKeepsPlaceNs;
}

// Waits until there is work, and does it.
void Listener::turn() {
  bool watches = !newcomers_.empty();
  {
    const std::scoped_lock lock(mutex_);
    watches = watches || !unproven_.empty();
  }
  std::vector<int> descriptors{wakes_.number()};
  for (const auto& each : newcomers_) {
    if (!each->has_token) descriptors.push_back(each->socket.number());
  }
  const bool accepts = has_room(steady_now_ns());
  if (accepts) {
    for (const Descriptor& each : listening_.sockets) descriptors.push_back(each.number());
  }
  std::vector<bool> ready;
  wait_readable(descriptors, watches || !accepts ? kTickMs : -1, &ready);
  if (stopping_) return;
  const int64_t now = steady_now_ns();
  // A pause of this process does not count towards the peers' time limits.
  const int64_t late = watches ? now - due_ns_ - 5 * kTickMs * kMs : 0;
  if (late > 0) {
    for (const auto& each : newcomers_) each->since_ns += late;
    const std::scoped_lock lock(mutex_);
    for (Unproven& each : unproven_) each.since_ns += late;
  }
  due_ns_ = now + kTickMs * kMs;
  if (!spare_.is_open()) spare_ = spare_descriptor();
  std::size_t at = 1;
  for (auto& each : newcomers_) {
    const bool may_read = !each->has_token && ready[at++];
    const bool stays = may_read ? read(*each) : now - each->since_ns < token_within_ns_;
    if (!stays || (each->has_token && hand_over(*each, now))) each = nullptr;
  }
  std::erase(newcomers_, nullptr);
  for (std::size_t i = 0; accepts && i < listening_.sockets.size(); ++i) {
    if (ready[at + i]) accept_some(listening_.sockets[i], now);
  }
  watch(now);
}

void Listener::accept_some(const Descriptor& listening, int64_t now) {
  for (int i = 0; i < kMostAcceptedAtOnce && has_room(now); ++i) {
    auto made = std::make_unique<Newcomer>();
    Accept accepted = accept_on(listening, &made->socket, &made->peer);
    if (accepted == Accept::kNoDescriptor && spare_.is_open()) {
      spare_.close();
      accepted = accept_on(listening, &made->socket, &made->peer);
      made->socket.close();
      spare_ = spare_descriptor();
      if (accepted == Accept::kAccepted && spare_.is_open()) continue;
    }
    if (accepted == Accept::kNoDescriptor || !spare_.is_open()) {
      accept_again_ns_ = now + kNoDescriptorNs;
      return;
    }
    if (accepted == Accept::kNone) return;
    made->since_ns = now;
    // In most cases the request has already arrived.
    if (!read(*made) || (made->has_token && hand_over(*made, now))) continue;
    if (newcomers_.size() >= most_newcomers_) newcomers_.erase(newcomers_.begin());
    newcomers_.push_back(std::move(made));
  }
}

// Reads as much of the request as has arrived. Returns whether to keep the newcomer.
bool Listener::read(Newcomer& newcomer) {
  const std::span<std::byte> room = std::as_writable_bytes(std::span(newcomer.bytes)).subspan(newcomer.used);
  const std::ptrdiff_t came = receive_now(newcomer.socket.number(), {&room, 1});
  if (came < 0) return false;
  if (came == 0) return true;
  newcomer.used += static_cast<std::size_t>(came);
  switch (read_request({newcomer.bytes.data(), newcomer.used}, secret_, &newcomer.from)) {
    case Request::kIncomplete: return true;
    case Request::kGood: return newcomer.has_token = true;
    case Request::kWrongSecret:
      send_text(newcomer.socket, kWrongSecretResponse);
      wrong_secret_(newcomer.from);
      return false;
    case Request::kOther: send_text(newcomer.socket, kOtherResponse); return false;
  }
  return false;
}

// Gives the connection to gRPC if there is room for another unproven one. Returns whether the newcomer is
// done.
bool Listener::hand_over(Newcomer& newcomer, int64_t now) {
  {
    Descriptor copy;
    const std::scoped_lock lock(mutex_);
    if (unproven_.size() >= most_unproven_) return false;
    copy = duplicate(newcomer.socket);
    if (!copy.is_open()) return true;
    unproven_.push_back({std::move(copy), std::move(newcomer.peer), newcomer.from, now});
  }
  send_text(newcomer.socket, kAcceptedResponse);
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.fd = newcomer.socket.release();
  acceptor_->HandleNewConnection(&connection);
  return true;
}

void Listener::watch(int64_t now) {
  std::vector<int> ended;
  {
    const std::scoped_lock lock(mutex_);
    ended.reserve(unproven_.size());
    std::erase_if(unproven_, [&](const Unproven& each) {
      if (!is_shut_down(each.socket)) {
        if (now - each.since_ns < prove_within_ns_ && received_bytes(each.socket) <= kMostUnprovenBytes)
          return false;
        shut_down(each.socket);
      }
      ended.push_back(each.from);
      return true;
    });
  }
  for (const int each : ended) ended_unproven_(each);
}

}  // namespace dist::grpc_link

// SPDX-License-Identifier: Apache-2.0
#include "core/net/grpc/link_owner.hpp"

#include <algorithm>
#include <utility>

#include "core/base/os/addresses.hpp"
#include "core/base/os/clock.hpp"
#include "core/base/os/socket.hpp"
#include "core/net/grpc/listening.hpp"

namespace dist::grpc_link {
namespace {

// The maximum number of links from other processes that have not proven the secret.
std::size_t most_strangers(const Config& config) noexcept {
  return config.addresses.empty() ? 64 : 4 * config.addresses.size() + 16;
}

}  // namespace

LinkOwner::LinkOwner(Config config, std::function<void(int)> wrong_secret,
                     std::function<void(int)> ended_unproven, Prober::Tell tell)
    : config_(std::move(config)),
      incoming_(std::move(wrong_secret), std::move(ended_unproven)),
      prober_({config_.credentials(), config_.addresses.empty() ? "" : host_of(config_.address(config_.me)),
               config_.secret, config_.me},
              std::move(tell)),
      service_(*this),
      names_([this] {
        named_ = true;
        wake();
      }) {}

std::string LinkOwner::listen_on(const std::vector<std::string>& addresses) {
  grpc::ServerBuilder builder;
  if (std::string why = incoming_.listen(config_, addresses, builder); !why.empty()) return why;
  builder.RegisterCallbackGenericService(&service_);
  server_ = builder.BuildAndStart();
  return server_ == nullptr ? why_not_started(config_) : "";
}

std::string LinkOwner::start_thread(const char* name) {
  if ((server_ != nullptr && !incoming_.start()) || !watcher_.start(watch_main, this).ok()) {
    stop_server();
    return "the system cannot create another thread or descriptor";
  }
  watcher_.name(name);
  return "";
}

// ---- Links ----

grpc::ServerGenericBidiReactor* LinkOwner::accept(grpc::GenericCallbackServerContext* context) {
  if (context->method() != kMethod)
    return new Refusal({grpc::StatusCode::UNIMPLEMENTED, "only libdist can connect here"});
  std::shared_ptr<ServerLink> link;
  {
    const std::scoped_lock lock(owning_);
    if (stopping_) return new Refusal({grpc::StatusCode::UNAVAILABLE, "this process is shutting down"});
    const auto strangers = std::count_if(unproven_.begin(), unproven_.end(),
                                         [](const LinkRef& each) { return !each->outgoing; });
    if (static_cast<std::size_t>(strangers) >= most_strangers(config_))
      return new Refusal({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many unauthenticated connections"});
    ++links_;
    link = std::make_shared<ServerLink>(*this, context);
    link->born_ns = steady_now_ns();
    link->connection = context->peer();
    if (config_.tls()) link->certificate = certificate_of(*context->auth_context());
    unproven_.push_back(link);
    ++changes_;
    woken_.notify_all();
  }
  link->start();
  return link.get();
}

bool LinkOwner::begin_link() noexcept {
  const std::scoped_lock lock(owning_);
  if (!stopping_) ++links_;
  return !stopping_;
}

void LinkOwner::destroyed() noexcept {
  const std::scoped_lock lock(owning_);
  --links_;
  woken_.notify_all();
}

void LinkOwner::keep_unproven(const LinkRef& link) {
  const std::scoped_lock lock(owning_);
  unproven_.push_back(link);
  ++changes_;
  woken_.notify_all();
}

void LinkOwner::proven(const Link& link) noexcept {
  LinkRef kept;
  const std::scoped_lock lock(owning_);
  const auto at = std::find_if(unproven_.begin(), unproven_.end(),
                               [&](const LinkRef& each) { return each.get() == &link; });
  if (at == unproven_.end()) return;
  kept = std::move(*at);
  *at = std::move(unproven_.back());
  unproven_.pop_back();
}

std::vector<LinkRef> LinkOwner::unproven() noexcept {
  const std::scoped_lock lock(owning_);
  return unproven_;
}

int64_t LinkOwner::unanswered_since_ns(int peer) noexcept {
  const std::scoped_lock lock(owning_);
  for (const LinkRef& each : unproven_) {
    if (each->outgoing && each->peer == peer && each->stage == Link::Stage::kAnswer) return each->born_ns;
  }
  return 0;
}

void LinkOwner::retire(std::shared_ptr<grpc::Channel> channel) noexcept {
  if (channel == nullptr) return;
  const std::scoped_lock lock(owning_);
  retired_.push_back(std::move(channel));
  ++changes_;
  woken_.notify_all();
}

// ---- Periodic work ----

void LinkOwner::wake() noexcept {
  const std::scoped_lock lock(owning_);
  ++changes_;
  woken_.notify_all();
}

uint64_t LinkOwner::changes() noexcept {
  const std::scoped_lock lock(owning_);
  return changes_;
}

bool LinkOwner::wait_for_change(uint64_t seen, std::chrono::steady_clock::time_point end) noexcept {
  std::unique_lock lock(owning_);
  return woken_.wait_until(lock, end, [&] { return changes_ != seen; });
}

void* LinkOwner::watch_main(void* self) {
  block_async_signals();
  static_cast<LinkOwner*>(self)->watch();
  return nullptr;
}

void LinkOwner::watch() noexcept {
  const int64_t beat = std::max<int64_t>(config_.lease_ns / 5, 1);
  int64_t next_beat = 0;
  int64_t due = steady_now_ns();
  std::unique_lock lock(owning_);
  while (!stopping_) {
    const uint64_t seen = changes_;
    lock.unlock();
    const int64_t now = steady_now_ns();
    const bool beats = now >= next_beat;
    if (beats) next_beat = now + beat;
    const int64_t links_due = look_at_links(now);
    const int64_t own_due = look({now, now - due > beat, beats, named_.exchange(false)});
    due = std::min({next_beat, links_due, own_due});
    lock.lock();
    const int64_t left = std::max<int64_t>(due - steady_now_ns(), 0);
    woken_.wait_for(lock, std::chrono::nanoseconds(left), [&] { return stopping_ || changes_ != seen; });
    if (changes_ != seen) due = std::max(due, steady_now_ns());
  }
}

// Ends links that are late, and attempts to connect to addresses that the peer's host name no longer has.
// Frees channels that are no longer used.
int64_t LinkOwner::look_at_links(int64_t now) noexcept {
  const int64_t within = config_.scaled_ns(prove_within_ns(config_.lease_ns));
  int64_t next = INT64_MAX;
  std::vector<std::shared_ptr<grpc::Channel>> idle;
  std::vector<LinkRef> links;
  {
    const std::scoped_lock lock(owning_);
    links = unproven_;
    idle = take_idle(retired_);
  }
  release(std::move(idle));
  for (const LinkRef& each : links) {
    // In stage kAdmission the proof of this process is in flight. The peer then enforces its own lease.
    if (each->opened() || each->stage == Link::Stage::kAdmission) continue;
    const int64_t until = each->born_ns + within;
    if (now >= until) {
      each->end("it did not authenticate in time");
      continue;
    }
    next = std::min(next, until);
    if (!each->outgoing || each->stage != Link::Stage::kAnswer || is_ip_address(each->host)) continue;
    if (names_.moved(each->host, each->hosts)) {
      each->end("its host name resolves to another address now");
    } else {
      next = std::min(next, now + Names::kAgainNs);
    }
  }
  return next;
}

// ---- The end ----

void LinkOwner::stop_thread() noexcept {
  {
    const std::scoped_lock lock(owning_);
    stopping_ = true;
    woken_.notify_all();
  }
  watcher_.join();
  prober_.stop();
}

void LinkOwner::stop_server() noexcept {
  incoming_.stop();
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

bool LinkOwner::wait_for_links(std::chrono::steady_clock::time_point end) noexcept {
  std::unique_lock lock(owning_);
  return woken_.wait_until(lock, end, [&] { return links_ == 0; });
}

void LinkOwner::free_all() noexcept {
  std::vector<LinkRef> links;
  {
    const std::scoped_lock lock(owning_);
    links.swap(unproven_);
  }
  links.clear();
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  {
    std::unique_lock lock(owning_);
    woken_.wait(lock, [&] { return links_ == 0; });
    channels.swap(retired_);
  }
  server_.reset();
  release(std::move(channels));
}

bool LinkOwner::stopping() noexcept {
  const std::scoped_lock lock(owning_);
  return stopping_;
}

}  // namespace dist::grpc_link

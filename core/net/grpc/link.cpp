// SPDX-License-Identifier: Apache-2.0
#include "core/net/grpc/link.hpp"

#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <utility>

#include "core/base/status.hpp"
#include "core/net/grpc/config.hpp"

namespace dist::grpc_link {

void Link::put_raw(const std::byte* data, std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  raw_.emplace_back(data, data + bytes);
}

void Link::open(FrameQueue& queue) noexcept {
  const std::scoped_lock lock(mutex_);
  queue_ = &queue;
  open_ = true;
}

void Link::open_carried() noexcept {
  const std::scoped_lock lock(mutex_);
  carried_ = true;
  open_ = true;
}

bool Link::change_carrier(CarrierRef* carrier) noexcept {
  const std::scoped_lock lock(mutex_);
  if (closing_) return false;
  carrier_.swap(*carrier);
  return true;
}

CarrierRef Link::carrier() const noexcept {
  const std::scoped_lock lock(mutex_);
  return carrier_;
}

bool Link::ending() const noexcept {
  const std::scoped_lock lock(mutex_);
  return closing_;
}

void Link::flush() noexcept {
  CarrierRef carrier;
  {
    const std::scoped_lock lock(mutex_);
    if (carried_ && !closing_) carrier = carrier_;
  }
  if (carrier != nullptr) carrier->flush();
  for (;;) {
    bool last = false;
    bool write = false;
    bool nothing_there = true;
    {
      const std::scoped_lock lock(mutex_);
      if (writing_ || closing_) return;
      // The peer disconnects a client that sends much data before it has proven that it knows the secret.
      const bool held = stage == Stage::kAdmission;
      if (!raw_.empty()) {
        const grpc::Slice slice(raw_.front().data(), raw_.front().size());
        written_ = grpc::ByteBuffer(&slice, 1);
        raw_.pop_front();
        writing_ = write = true;
      } else if (queue_ != nullptr && !held && queue_->take(&written_)) {
        writing_ = write = true;
      } else if (drain_) {
        closing_ = told_ = last = true;
      } else if (queue_ == nullptr || held) {
        return;
      }
      nothing_there = queue_ != nullptr && !held && queue_->empty();
    }
    if (last) return writes_over();
    if (write) {
      start_write(&written_);
      // The next write is prepared while this one is in flight.
      if (nothing_there) user_.more(*this);
      return;
    }
    if (!user_.more(*this)) return;
  }
}

void Link::write_done(bool ok) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    writing_ = false;
    written_.Clear();
  }
  ok ? flush() : no_more_writes();
  // Another thread may have ended the link during the write.
  const bool over = [&] {
    const std::scoped_lock lock(mutex_);
    return closing_;
  }();
  if (over) no_more_writes();
}

void Link::no_more_writes() noexcept {
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
    if (writing_ || cutting_ != 0 || std::exchange(told_, true)) return;
  }
  writes_over();
}

void Link::end(const std::string& why) noexcept {
  const LinkRef stays = weak_from_this().lock();
  CarrierRef carrier;
  {
    const std::scoped_lock lock(mutex_);
    carrier = carrier_;
  }
  if (carrier != nullptr) carrier->end();
  {
    const std::scoped_lock lock(mutex_);
    if (why_.empty()) why_ = why;
    closing_ = true;
    // A server's call may be destroyed as soon as it has been finished, but not while a thread is in cut().
    if (!outgoing && told_) return;
    ++cutting_;
  }
  cut();
  {
    const std::scoped_lock lock(mutex_);
    --cutting_;
  }
  no_more_writes();
}

void Link::end_after_writes(const std::string& why) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    if (why_.empty()) why_ = why;
    drain_ = true;
  }
  flush();
}

void Link::read_done(bool ok) noexcept {
  if (!ok) return no_more_writes();
  slices_.clear();
  const bool whole = reading_.Dump(&slices_).ok();
  reading_.Clear();
  const std::string why =
      whole ? user_.took(weak_from_this().lock(), slices_) : "a message that cannot be read";
  slices_.clear();
  if (!why.empty()) end(why);
  start_read(&reading_);
}

void Link::done(const std::string& status) noexcept {
  const LinkRef self = std::exchange(self_, nullptr);
  std::string why;
  {
    // Another thread may be in end().
    const std::scoped_lock lock(mutex_);
    why = why_;
  }
  user_.over(self, why, status);
}

// ---- The beginning of links ----

bool gather(std::span<const grpc::Slice> message, std::byte (&to)[kMostBeginningBytes],
            std::span<const std::byte>* out) noexcept {
  std::size_t bytes = 0;
  for (const grpc::Slice& each : message) {
    if (each.size() > sizeof to - bytes) return false;
    std::copy_n(reinterpret_cast<const std::byte*>(each.begin()), each.size(), to + bytes);
    bytes += each.size();
  }
  *out = {to, bytes};
  return true;
}

std::string reject_server(Link& link, const std::string& why) noexcept {
  Admission admission;
  copy_text(admission.text, why.c_str());
  put(link, admission);
  link.end_after_writes("its certificate " + why);
  return "";
}

bool is_rejection(std::span<const std::byte> message, Admission* out) noexcept {
  return message.size() == Admission::kBytes && out->read(message.data()) &&
         out->answer == Admission::Answer::kNo;
}

int64_t prove_within_ns(int64_t lease_ns) noexcept {
  constexpr int64_t kLeast = 5'000'000'000;
  constexpr int64_t kMost = 30'000'000'000;
  return std::clamp(lease_ns, kLeast, kMost);
}

// ---- The two sides ----

std::string ClientLink::server_certificate() const {
  const auto context = context_->auth_context();
  return context == nullptr ? "" : certificate_of(*context);
}

void ClientLink::prepare() {
  self_ = shared_from_this();
  grpc::GenericStub stub(channel_);
  stub.PrepareBidiStreamingCall(context_.get(), kMethod, {}, this);
  AddHold();
}

void ClientLink::start() {
  start_read(&reading_);
  give_to_grpc(this);
  StartCall();
  flush();
}

void ServerLink::start() {
  self_ = shared_from_this();
  start_read(&reading_);
}

}  // namespace dist::grpc_link

// SPDX-License-Identifier: Apache-2.0
#include "core/engine/gloo/carrier.hpp"

#include <gloo/common/error.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

namespace dist::grpc_link {
namespace {

using std::chrono::milliseconds;

// Gloo waits five times as long for a connection.
constexpr milliseconds kConnectTime{1000};
constexpr milliseconds kProveTime{5000};
// Gloo has no wait without an end that a later one would not share. Leases end those that must end.
constexpr milliseconds kForever = std::chrono::hours(24 * 365 * 10);
constexpr uint64_t kProofTag = 1;
constexpr uint64_t kFramesTag = 2;
// What goes back, beside what is sent: grants and credits. A slice of the queue's fits.
constexpr std::size_t kBackBytes = std::size_t{24} << 10;
constexpr std::size_t kForthBytes = kCarriedBytes + Frame::kBytes;

// The other end breaks the protocol.
struct Broken final : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace

GlooCarrier::Ring::Ring(Memory& given, gloo::transport::Context& context, std::size_t bytes)
    : owner(given), payload(bytes) {
  const std::size_t each = sizeof(Header) + payload;
  memory = static_cast<std::byte*>(owner.try_allocate(kSlots * each, alignof(Header)));
  if (memory == nullptr) throw std::bad_alloc();
  try {
    for (uint32_t i = 0; i < kSlots; ++i) buffers[i] = context.createUnboundBuffer(at(i), each);
  } catch (...) {
    owner.free(memory, kSlots * each, alignof(Header));
    throw;
  }
}

GlooCarrier::Ring::~Ring() {
  for (Buffer& each : buffers) each.reset();
  owner.free(memory, kSlots * (sizeof(Header) + payload), alignof(Header));
}

GlooCarrier::GlooCarrier(Memory& memory, gloo::transport::Device& device, CarrierUser& user, bool sends,
                         uint32_t number)
    : Carrier(number), sends_(sends), peer_(sends ? 1 : 0), user_(user) {
  context_ = device.createContext(1 - peer_, 2);
  context_->setTimeout(kConnectTime);
  const std::vector<char> bytes = context_->createPair(peer_)->address().bytes();
  address_.assign(bytes.begin(), bytes.end());
  proof_out_ = context_->createUnboundBuffer(own_proof_.data(), own_proof_.size());
  proof_in_ = context_->createUnboundBuffer(peer_proof_.data(), peer_proof_.size());
  out_ = std::make_unique<Ring>(memory, *context_, sends ? kForthBytes : kBackBytes);
  in_ = std::make_unique<Ring>(memory, *context_, sends ? kBackBytes : kForthBytes);
}

GlooCarrier::~GlooCarrier() = default;

bool GlooCarrier::start(Meeting meeting) noexcept {
  meeting_ = std::move(meeting);
  if (thread_.start(thread_main, this).ok()) {
    thread_.name("dist-gloo");
    return true;
  }
  meeting_ = {};
  over_ = true;
  return false;
}

void* GlooCarrier::thread_main(void* self) {
  block_async_signals();
  static_cast<GlooCarrier*>(self)->run();
  return nullptr;
}

void GlooCarrier::run() noexcept {
  std::string why;
  try {
    prove();
    why = receive();
  } catch (const Broken& error) {
    why = error.what();
  } catch (const gloo::IoException&) {
    // The other end is gone, or has said nothing in time.
  } catch (const std::exception& error) {
    why = error.what();
  } catch (...) {
    why = "an unknown error of Gloo's";
  }
  user_.carrier_over(meeting_.link, *this, why);
  {
    const std::scoped_lock lock(mutex_);
    let_go_ = true;
    proof_out_.reset();
    proof_in_.reset();
    out_.reset();
    in_.reset();
    context_.reset();
  }
  meeting_ = {};
  over_ = true;
}

void GlooCarrier::end() noexcept {
  ending_ = true;
  const std::scoped_lock lock(mutex_);
  if (!thread_.started()) over_ = true;
  if (let_go_) return;
  proof_in_->abortWaitRecv();
  for (Buffer& each : in_->buffers) each->abortWaitRecv();
  // A connection that is not there yet is not waited for; one that is ends when it is let go, with what was sent on it.
  try {
    if (!can_send_) context_->getPair(peer_)->close();
  } catch (...) {
    // It has failed before.
  }
}

// ---- The beginning ----

// Throws where there is no connection, or not to whom it should be.
void GlooCarrier::prove() {
  own_proof_ = meeting_.own;
  if (ending_) throw gloo::IoException("ended");
  context_->getPair(peer_)->connect(std::vector<char>(meeting_.address.begin(), meeting_.address.end()));
  proof_in_->recv(peer_, kProofTag);
  if (sends_) proof_out_->send(peer_, kProofTag);
  if (ending_ || !proof_in_->waitRecv(nullptr, kProveTime)) throw gloo::IoException("ended");
  if (!grpc_link::equal(peer_proof_.data(), meeting_.wanted.data(), peer_proof_.size())) {
    throw gloo::IoException("it is somebody else");
  }
  for (uint32_t i = 0; i < kSlots; ++i) in_->buffer(i)->recv(peer_, kFramesTag);
  if (!sends_) proof_out_->send(peer_, kProofTag);
  if (!proof_out_->waitSend(nullptr, kProveTime)) throw gloo::IoException("ended");
  if (sends_) {
    const Header header{0, 0};
    std::memcpy(out_->at(0), &header, sizeof header);
    out_->buffer(0)->send(peer_, kFramesTag, 0, sizeof header);
    out_->used[0] = true;
    sent_ = 1;
    const std::scoped_lock lock(mutex_);
    can_send_ = true;
  }
  if (sends_ && !user_.carried(meeting_.link, *this)) throw gloo::IoException("ended");
}

// ---- Frames that come ----

std::string GlooCarrier::receive() {
  // What has come before the end of the connection is read after it.
  bool gone = false;
  uint32_t posted = kSlots;
  bool first = !sends_;
  for (uint32_t number = 0;; ++number) {
    if (number == posted) return "";
    gloo::transport::UnboundBuffer& buffer = *in_->buffer(number);
    if (ending_ || !buffer.waitRecv(nullptr, first ? kProveTime : kForever)) return "";
    const std::byte* const at = in_->at(number);
    Header header;
    std::memcpy(&header, at, sizeof header);
    if (header.bytes > in_->payload)
      throw Broken("it says that a message has more bytes than there is room for");
    const uint32_t acknowledged = acknowledged_;
    if (header.consumed - acknowledged > sent_ - acknowledged) {
      throw Broken("it has consumed messages that were not sent");
    }
    acknowledged_ = header.consumed;
    if (first) {
      {
        const std::scoped_lock lock(mutex_);
        can_send_ = true;
      }
      if (!user_.carried(meeting_.link, *this)) return "";
      first = false;
    }
    if (header.bytes != 0) {
      std::string why = user_.took_carried(meeting_.link, {at + sizeof header, header.bytes});
      if (!why.empty()) return why;
    }
    if (!gone) {
      try {
        buffer.recv(peer_, kFramesTag);
        ++posted;
      } catch (const std::exception&) {
        gone = true;
      }
    }
    consumed_ = number + 1;
    flush();
  }
}

// ---- Frames that go ----

void GlooCarrier::flush() noexcept {
  // Whoever is at it sees to this call, too.
  if (calls_.fetch_add(1) != 0) return;
  const std::scoped_lock lock(mutex_);
  uint32_t seen;
  do {
    seen = calls_;
    if (let_go_ || !can_send_) continue;
    try {
      pump();
    } catch (...) {
      // The thread hears of the same, and says so.
      can_send_ = false;
    }
  } while (!calls_.compare_exchange_strong(seen, 0));
}

void GlooCarrier::pump() {
  for (;;) {
    const uint32_t number = sent_;
    const uint32_t under_way = number - acknowledged_;
    if (under_way >= kSlots) return;
    std::byte* const at = out_->at(number);
    gloo::transport::UnboundBuffer& buffer = *out_->buffer(number);
    // The other end has consumed what was sent from here before.
    std::size_t bytes = 0;
    if (under_way < kSlots - kReserved) {
      std::byte* const frames = at + sizeof(Header);
      bytes = meeting_.queue->drain(frames, out_->payload);
      if (bytes == 0) {
        meeting_.queue->begin_direct(frames, out_->payload);
        user_.more(*meeting_.link);
        bytes = meeting_.queue->end_direct();
        // What did not go straight there.
        if (bytes == 0) bytes = meeting_.queue->drain(frames, out_->payload);
      }
    }
    const uint32_t consumed = consumed_;
    if (bytes == 0 && consumed - told_ < kTellAfter) return;
    const Header header{static_cast<uint32_t>(bytes), consumed};
    std::memcpy(at, &header, sizeof header);
    // That is over, then, or ends just now.
    if (std::exchange(out_->used[number % kSlots], true) && !buffer.waitSend(nullptr, kProveTime)) {
      throw gloo::IoException("ended");
    }
    buffer.send(peer_, kFramesTag, 0, sizeof header + bytes);
    told_ = consumed;
    sent_ = number + 1;
  }
}

// ---- All of them ----

std::string GlooCarriers::start(const std::string& host) noexcept {
  try {
    device_ = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(host.c_str()));
    return "";
  } catch (const std::exception& error) {
    return "Gloo cannot use " + host + ": " + error.what();
  }
}

CarrierRef GlooCarriers::make(CarrierUser& user, bool sends, uint32_t attempt, std::string* why) noexcept {
  try {
    return std::make_shared<GlooCarrier>(memory_, *device_, user, sends, attempt);
  } catch (const std::exception& error) {
    *why = error.what();
    return nullptr;
  }
}

}  // namespace dist::grpc_link

// SPDX-License-Identifier: Apache-2.0
#include "core/engine/gloo/carrier.hpp"

#include <gloo/common/error.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <utility>
#include <vector>

namespace dist::grpc_link {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kConnectTime{5000};
constexpr milliseconds kProveTime{5000};
constexpr uint64_t kProofTag = 1;
constexpr int kFrames = 2;
// Room for frames that are sent back, grants and credits, besides messages. A slice of the queue fits.
constexpr std::size_t kBackBytes = std::size_t{24} << 10;
constexpr std::size_t kForthBytes = kCarriedBytes + Frame::kBytes;

}  // namespace

GlooCarrier::Ring::Ring(Memory& given, std::size_t bytes) : owner(given), payload(bytes) {
  memory = static_cast<std::byte*>(owner.try_allocate(all(), alignof(Header)));
  if (memory == nullptr) throw std::bad_alloc();
  for (uint32_t number = 0; number < kSlots; ++number) write(number, {});
}

GlooCarrier::Ring::~Ring() { owner.free(memory, all(), alignof(Header)); }

GlooCarrier::Header GlooCarrier::Ring::header(uint32_t number) const noexcept {
  Header header;
  std::memcpy(&header, at(number), sizeof header);
  return header;
}

void GlooCarrier::Ring::write(uint32_t number, const Header& header) const noexcept {
  std::memcpy(at(number), &header, sizeof header);
}

GlooCarrier::GlooCarrier(Memory& memory, DeviceRef device, CarrierUser& user, bool sends, uint32_t number,
                         int64_t lease_ns)
    : Carrier(number),
      sends_(sends),
      peer_(sends ? 1 : 0),
      user_(user),
      out_(memory, sends ? kForthBytes : kBackBytes),
      in_(memory, sends ? kBackBytes : kForthBytes) {
  context_ = std::make_shared<GuardedContext>(std::move(device), 1 - peer_, this);
  context_->setTimeout(kConnectTime);
  context_->limit_unacknowledged(std::max(milliseconds(1), milliseconds(lease_ns / 1'000'000)));
  const std::vector<char> bytes = context_->createPair(peer_)->address().bytes();
  address_.assign(bytes.begin(), bytes.end());
  proof_out_ = context_->createUnboundBuffer(own_proof_.data(), own_proof_.size());
  proof_in_ = context_->createUnboundBuffer(peer_proof_.data(), peer_proof_.size());
}

GlooCarrier::~GlooCarrier() {
  // The context notifies this object.
  if (context_ != nullptr) context_->stop();
}

bool GlooCarrier::start(Meeting meeting) noexcept {
  const std::scoped_lock lock(waking_);
  // join() may have been called already.
  if (ending_) return true;
  meeting_ = std::move(meeting);
  started_ = thread_.start(thread_main, this).ok();
  if (started_) {
    thread_.name("dist-gloo");
    return true;
  }
  meeting_ = {};
  over_ = true;
  return false;
}

void GlooCarrier::join() noexcept {
  {
    // start() may be about to return.
    const std::scoped_lock lock(waking_);
  }
  thread_.join();
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
    begin();
    await_end();
  } catch (const gloo::IoException&) {
    // The peer is gone, or has not answered in time.
  } catch (const std::exception& error) {
    why = error.what();
  } catch (...) {
    why = "an unknown error of Gloo's";
  }
  {
    const std::scoped_lock lock(mutex_);
    can_send_ = false;
  }
  // Messages that have arrived are still consumed.
  context_->stop();
  {
    const std::scoped_lock lock(waking_);
    if (why.empty()) why = why_;
  }
  user_.carrier_over(meeting_.link, *this, why);
  out_.buffer.reset();
  in_.buffer.reset();
  proof_out_.reset();
  {
    std::shared_ptr<GuardedContext> context;  // released without the lock
    const std::scoped_lock lock(waking_);
    proof_in_.reset();
    context.swap(context_);
  }
  meeting_ = {};
  over_ = true;
}

// Wakes the thread so that it ends. The first reason given is kept.
void GlooCarrier::finish(const std::string& why) noexcept {
  const std::scoped_lock lock(waking_);
  if (!finished_) why_ = why;
  finished_ = true;
  woken_.notify_all();
}

void GlooCarrier::end() noexcept {
  ending_ = true;
  const std::scoped_lock lock(waking_);
  finished_ = true;
  woken_.notify_all();
  if (!started_) over_ = true;
  if (context_ != nullptr) context_->give_up();
  if (proof_in_ != nullptr) proof_in_->abortWaitRecv();
}

// ---- The beginning ----

// Throws if there is no connection, or if the peer is not the right one.
void GlooCarrier::prove() {
  own_proof_ = meeting_.own;
  if (ending_) throw gloo::IoException("ended");
  context_->connection().connect(std::vector<char>(meeting_.address.begin(), meeting_.address.end()));
  proof_in_->recv(peer_, kProofTag);
  if (sends_) proof_out_->send(peer_, kProofTag);
  if (ending_ || !proof_in_->waitRecv(nullptr, kProveTime)) throw gloo::IoException("ended");
  if (!grpc_link::equal(peer_proof_.data(), meeting_.wanted.data(), peer_proof_.size())) {
    throw gloo::IoException("it is somebody else");
  }
  proven_ = true;
  in_.buffer = context_->connection().createRecvBuffer(kFrames, in_.memory, in_.all());
  {
    const std::scoped_lock lock(mutex_);
    out_.buffer = context_->connection().createSendBuffer(kFrames, out_.memory, out_.all());
  }
  if (!sends_) proof_out_->send(peer_, kProofTag);
  if (!proof_out_->waitSend(nullptr, kProveTime)) throw gloo::IoException("ended");
}

// The sender's first message shows that it has authenticated the receiver.
void GlooCarrier::begin() {
  if (sends_) {
    {
      const std::scoped_lock lock(mutex_);
      const Header header{0, 0, 1};
      out_.write(0, header);
      sent_ = 1;
      can_send_ = true;
      out_.buffer->send(0, sizeof header, 0);
    }
    if (!user_.carried(meeting_.link, *this)) throw gloo::IoException("ended");
  }
  {
    const std::scoped_lock lock(taking_);
    takes_ = true;
  }
  came();
}

void GlooCarrier::await_end() {
  std::unique_lock lock(waking_);
  const auto begun = [&] { return begun_ || finished_; };
  if (!sends_ && !woken_.wait_for(lock, kProveTime, begun)) throw gloo::IoException("it does not begin");
  woken_.wait(lock, [&] { return finished_; });
}

// ---- Receiving ----

// When Gloo has read something, all of it is in place, whatever it was.
void GlooCarrier::one_came() noexcept {
  const uint32_t number = arrived_.load(std::memory_order_relaxed);
  if (in_.header(number).number == number + 1) arrived_.store(number + 1, std::memory_order_release);
}

void GlooCarrier::came() noexcept {
  const std::scoped_lock lock(taking_);
  if (!takes_) return;
  while (taken_ != arrived_.load(std::memory_order_acquire)) {
    takes_ = take(taken_);
    if (!takes_) return;
    consumed_ = ++taken_;
    flush();
  }
  if (moved_.exchange(false)) {
    user_.moved_apart(meeting_.link);
    if (sends_) flush();
  }
}

bool GlooCarrier::begin_apart(const Piece& piece) noexcept {
  // A worker sends pieces only after this end has verified its proof, so this is a stranger.
  if (!proven_) return false;
  const char* const why = user_.begin_apart(*meeting_.link, piece);
  if (why != nullptr) finish(why);
  return why == nullptr;
}

std::ptrdiff_t GlooCarrier::receive_apart(int socket, std::size_t most) noexcept {
  const char* why = nullptr;
  const std::ptrdiff_t came = user_.receive_apart(*meeting_.link, socket, most, &why);
  moved_ = true;
  if (why != nullptr) finish(why);
  return came;
}

// `taking_` must be held. Returns false if the carrier ends.
bool GlooCarrier::take(uint32_t number) {
  if (ending_) return false;
  const Header header = in_.header(number);
  std::string why;
  const uint32_t acknowledged = acknowledged_;
  if (header.bytes > in_.payload) {
    why = "it says that a message has more bytes than there is room for";
  } else if (header.consumed - acknowledged > sent_ - acknowledged) {
    why = "it has consumed messages that were not sent";
  } else {
    acknowledged_ = header.consumed;
    if (number == 0 && !sends_) {
      {
        const std::scoped_lock lock(mutex_);
        can_send_ = true;
      }
      const bool wanted = user_.carried(meeting_.link, *this);
      const std::scoped_lock lock(waking_);
      begun_ = true;
      finished_ = finished_ || !wanted;
      woken_.notify_all();
      if (!wanted) return false;
    }
    if (header.bytes == 0) return true;
    why = user_.took_carried(meeting_.link, {in_.at(number) + sizeof header, header.bytes});
    if (why.empty()) return true;
  }
  finish(why);
  return false;
}

// ---- Sending ----

void GlooCarrier::flush() noexcept {
  // A thread that is flushing also handles this call.
  if (calls_.fetch_add(1) != 0) return;
  LinkRef moved;
  {
    const std::scoped_lock lock(mutex_);
    const bool could = can_send_;
    uint32_t seen;
    do {
      seen = calls_;
      if (!can_send_) continue;
      try {
        pump();
      } catch (...) {
        can_send_ = false;
        finish("");
      }
    } while (!calls_.compare_exchange_strong(seen, 0));
    if (could && moved_.exchange(false)) moved = meeting_.link;
  }
  if (moved != nullptr) user_.moved_apart(moved);
}

std::ptrdiff_t GlooCarrier::send_apart(int socket, std::span<const std::byte> before) noexcept {
  const std::ptrdiff_t went = user_.send_apart(*meeting_.link, socket, before);
  moved_ = true;
  return went;
}

void GlooCarrier::pump() {
  for (;;) {
    if (pump_message()) continue;
    Piece piece;
    if (!user_.next_apart(*meeting_.link, &piece)) return;
    context_->send_apart(piece);
  }
}

// Returns false if there is nothing to send, or no free slot.
bool GlooCarrier::pump_message() {
  const uint32_t number = sent_;
  const uint32_t under_way = number - acknowledged_;
  if (under_way >= kSlots) return false;
  // The peer has consumed everything that was sent in this slot before.
  std::size_t bytes = 0;
  if (under_way < kSlots - kReserved) {
    std::byte* const frames = out_.at(number) + sizeof(Header);
    bytes = meeting_.queue->drain(frames, out_.payload);
    if (bytes == 0) {
      meeting_.queue->begin_direct(frames, out_.payload);
      user_.more(*meeting_.link);
      bytes = meeting_.queue->end_direct();
      // Frames that were not written there directly.
      if (bytes == 0) bytes = meeting_.queue->drain(frames, out_.payload);
    }
  }
  const uint32_t consumed = consumed_;
  if (bytes == 0 && consumed - told_ < kTellAfter) return false;
  const Header header{static_cast<uint32_t>(bytes), consumed, number + 1};
  out_.write(number, header);
  told_ = consumed;
  sent_ = number + 1;  // must be set before the peer can acknowledge it
  out_.buffer->send(out_.offset(number), sizeof header + bytes, out_.offset(number));
  return true;
}

// ---- Creation ----

DeviceRef GlooCarriers::device(const std::string& host) {
  const std::scoped_lock lock(mutex_);
  DeviceRef& known = devices_[host];
  // The device starts a thread.
  const AsyncSignalsBlocked blocked;
  if (known == nullptr) known = std::make_shared<GuardedDevice>(host);
  return known;
}

std::string GlooCarriers::start(const std::string& host) noexcept {
  try {
    (void)device(host);
    return "";
  } catch (const std::exception& error) {
    return "Gloo cannot use " + host + ": " + error.what();
  }
}

CarrierRef GlooCarriers::make(CarrierUser& user, bool sends, uint32_t attempt, const std::string& host,
                              int64_t lease_ns, std::string* why) noexcept {
  try {
    return std::make_shared<GlooCarrier>(memory_, device(host), user, sends, attempt, lease_ns);
  } catch (const std::exception& error) {
    *why = error.what();
    return nullptr;
  }
}

}  // namespace dist::grpc_link

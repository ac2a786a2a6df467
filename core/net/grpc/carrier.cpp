// SPDX-License-Identifier: Apache-2.0
#include "core/net/grpc/carrier.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "core/base/os/clock.hpp"
#include "core/base/wire.hpp"

namespace dist::grpc_link {
namespace {

constexpr int64_t kProveNs = 5'000'000'000;
// Size of a block of frames that the receiver sends (grants and credits). A slice of the queue fits into it.
constexpr std::size_t kBackBytes = std::size_t{24} << 10;
constexpr std::size_t kForthBytes = kCarriedBytes + Frame::kBytes;
// A read asks for this many bytes even if fewer are needed, so that a small block takes one read() instead of
// two.
constexpr std::size_t kReadAheadBytes = 4096;

constexpr std::size_t most_bytes(bool forth) noexcept { return forth ? kForthBytes : kBackBytes; }

// Runs `work` under the lock. If another thread is running it already, that thread repeats it instead.
template <class Work>
void take_turn(std::atomic<uint32_t>& calls, std::mutex& mutex, const Work& work) noexcept {
  if (calls.fetch_add(1) != 0) return;
  const std::scoped_lock lock(mutex);
  uint32_t seen;
  do {
    seen = calls;
    work();
  } while (!calls.compare_exchange_strong(seen, 0));
}

}  // namespace

// ---- The table of callbacks ----

const dist_link_callbacks Carrier::kCallbacks = {
    sizeof kCallbacks, 0,
    [](dist_link* link) {
      auto& self = *static_cast<Carrier*>(link);
      self.receive();
      self.flush();
    },
    [](dist_link* link, const char* reason) { static_cast<Carrier*>(link)->ended(reason); }};

// ---- Beginning and end ----

Carrier::Buffer::Buffer(Memory& memory, std::size_t bytes)
    : owner(memory), size(bytes), data(static_cast<std::byte*>(memory.try_allocate(bytes, 1))) {
  if (data == nullptr) throw std::bad_alloc();
}

Carrier::Buffer::~Buffer() { owner.free(data, size, 1); }

Carrier::Carrier(Memory& memory, const dist_link_functions& functions, CarrierUser& user, bool sends,
                 uint32_t number)
    : attempt(number),
      sends_(sends),
      prove_until_ns_(steady_now_ns() + kProveNs),
      functions_(functions),
      user_(user),
      out_(memory, Head::kBytes + most_bytes(sends)),
      in_(memory, Head::kBytes + most_bytes(!sends) + kReadAheadBytes) {}

Carrier::~Carrier() { join(); }

std::string Carrier::listen(void* module, const std::string& host) noexcept {
  const dist_link_options options = {sizeof options, sends_ ? 1 : 0, host.c_str(), this};
  char address[DIST_LINK_MAX_ADDRESS_BYTES];
  std::size_t bytes = 0;
  char error[512] = "";
  void* connection = nullptr;
  if (functions_.listen(module, &options, &connection, address, &bytes, error, sizeof error) != DIST_OK) {
    return *error == '\0' ? "the module gives no reason" : error;
  }
  connection_ = connection;
  if (bytes > sizeof address) return "its address is too long";
  address_.assign(address, bytes);
  return "";
}

void Carrier::start(Meeting meeting) noexcept {
  const std::string address = std::move(meeting.address);
  // The connection must not be freed before connect() has returned.
  const std::scoped_lock lock(sending_, receiving_, state_);
  // A link that is ending rejects the carrier of another attempt, and then starts that of the previous
  // attempt a second time.
  if (ending_ || started_) return;
  started_ = true;
  meeting_ = std::move(meeting);
  can_send_ = takes_ = true;
  if (sends_) put(meeting_.own);
  functions_.connect(connection_, address.data(), address.size());
}

void Carrier::end() noexcept {
  const std::scoped_lock lock(state_);
  ending_ = true;
  if (!started_) over_ = true;
  if (connection_ != nullptr && !freed_) functions_.cut(connection_);
}

void Carrier::join() noexcept {
  {
    const std::scoped_lock lock(state_);
    if (connection_ == nullptr || std::exchange(freed_, true)) return;
  }
  functions_.destroy(connection_);
}

// Cuts the connection, keeps the first reason given, and returns false.
bool Carrier::fail(const std::string& why) noexcept {
  {
    const std::scoped_lock lock(state_);
    if (why_.empty()) why_ = why;
  }
  functions_.cut(connection_);
  return false;
}

void Carrier::ended(const char* reason) noexcept {
  {
    const std::scoped_lock lock(sending_);
    can_send_ = false;
  }
  {
    const std::scoped_lock lock(receiving_);
    takes_ = false;
  }
  std::string why;
  {
    const std::scoped_lock lock(state_);
    why = why_.empty() && reason != nullptr ? reason : why_;
  }
  user_.carrier_over(meeting_.link, *this, why);
  LinkRef link;  // released after the locks
  {
    const std::scoped_lock lock(sending_, receiving_);
    link.swap(meeting_.link);
  }
  link = nullptr;
  over_ = true;
}

// ---- Blocks ----

void Carrier::Head::write(std::byte* to) const noexcept {
  WireWriter out(to);
  out.put(static_cast<uint32_t>(kind));
  out.put(bytes);
  out.put(id);
  out.put(offset);
}

bool Carrier::Head::read(const std::byte* from) noexcept {
  WireReader in(from, kBytes);
  kind = static_cast<Kind>(in.take_in<uint32_t>(1, static_cast<uint32_t>(Kind::kEnd) - 1));
  bytes = in.take<uint64_t>();
  id = in.take<uint64_t>();
  offset = in.take<uint64_t>();
  return in.good() && (kind == Kind::kPiece || (id == 0 && offset == 0)) &&
         (kind != Kind::kBegin || bytes == 0);
}

std::ptrdiff_t Carrier::write(std::span<const std::span<const std::byte>> parts) noexcept {
  dist_link_block blocks[DIST_LINK_MAX_BLOCKS];
  std::size_t n = 0;
  std::size_t bytes = 0;
  for (const std::span<const std::byte> each : parts) {
    if (!each.empty()) blocks[n++] = {const_cast<std::byte*>(each.data()), each.size()};
    bytes += each.size();
  }
  const std::ptrdiff_t went = n == 0 ? 0 : functions_.write(connection_, blocks, n);
  blocked_ = went < static_cast<std::ptrdiff_t>(bytes);
  return went;
}

// Returns bytes that were read ahead, if there are any, before it reads more from the connection.
std::ptrdiff_t Carrier::read(std::span<const std::span<std::byte>> parts) noexcept {
  if (!in_.left().empty()) {
    std::size_t taken = 0;
    for (const std::span<std::byte> each : parts) {
      const std::size_t some = std::min(each.size(), in_.left().size());
      std::memcpy(each.data(), in_.left().data(), some);
      in_.take(some);
      taken += some;
    }
    return static_cast<std::ptrdiff_t>(taken);
  }
  dist_link_block blocks[DIST_LINK_MAX_BLOCKS];
  std::size_t n = 0;
  for (const std::span<std::byte> each : parts) {
    if (!each.empty()) blocks[n++] = {each.data(), each.size()};
  }
  return functions_.read(connection_, blocks, n);
}

// ---- Receiving ----

void Carrier::receive() noexcept {
  LinkRef moved;
  take_turn(arrivals_, receiving_, [&] {
    take_all();
    if (std::exchange(moved_in_, false)) moved = meeting_.link;
  });
  if (moved != nullptr) user_.moved_apart(moved);
}

void Carrier::take_all() noexcept {
  while (takes_) {
    bool goes_on = false;
    switch (stage_) {
      case Stage::kProof: goes_on = fill_in(meeting_.wanted.size()) && take_proof(); break;
      case Stage::kBegin:
      case Stage::kHead: goes_on = fill_in(Head::kBytes) && take_head(); break;
      case Stage::kFrames: goes_on = fill_in(static_cast<std::size_t>(head_.bytes)) && take_frames(); break;
      case Stage::kPiece: goes_on = take_piece(); break;
    }
    if (!goes_on) return;
  }
}

// Reads until the buffer has that many bytes. Returns false if they have not arrived yet or will not arrive.
bool Carrier::fill_in(std::size_t bytes) noexcept {
  if (in_.left().size() >= bytes) return true;
  std::copy(in_.data + in_.at, in_.data + in_.end, in_.data);
  in_.end -= std::exchange(in_.at, 0);
  while (in_.end < bytes) {
    dist_link_block block = {in_.data + in_.end,
                             std::max(bytes, std::min(kReadAheadBytes, in_.size)) - in_.end};
    const std::ptrdiff_t came = functions_.read(connection_, &block, 1);
    if (came < 0) takes_ = fail("");
    if (came <= 0) return false;
    in_.end += static_cast<std::size_t>(came);
  }
  return true;
}

bool Carrier::take_proof() noexcept {
  const bool good = equal(in_.left().data(), meeting_.wanted.data(), meeting_.wanted.size());
  in_.take(meeting_.wanted.size());
  if (!good) return takes_ = fail("");  // the connection is from another process
  if (!sends_) {
    stage_ = Stage::kBegin;
    const std::scoped_lock lock(sending_);
    put(meeting_.own);
    return true;
  }
  std::byte head[Head::kBytes];
  Head{.kind = Kind::kBegin}.write(head);
  {
    const std::scoped_lock lock(sending_);
    put(head);
  }
  return begin();
}

// Both ends are authenticated, and frames may flow.
bool Carrier::begin() noexcept {
  stage_ = Stage::kHead;
  proven_ = true;
  {
    const std::scoped_lock lock(sending_);
    may_fill_ = true;
  }
  return user_.carried(meeting_.link, *this) || (takes_ = fail(""));
}

bool Carrier::take_head() noexcept {
  const bool good = head_.read(in_.left().data());
  in_.take(Head::kBytes);
  if (!good || (head_.kind == Kind::kBegin) != (stage_ == Stage::kBegin)) {
    return takes_ = fail("an invalid block");
  }
  if (head_.kind == Kind::kBegin) return begin();
  if (head_.kind == Kind::kFrames) {
    stage_ = Stage::kFrames;
    return (head_.bytes >= 1 && head_.bytes <= most_bytes(!sends_)) ||
           (takes_ = fail("it announced a block that is too large"));
  }
  const Piece piece = {head_.id, head_.offset, head_.bytes};
  const char* const why = piece.bytes > Piece::kMostBytes ? "a piece that is too large"
                                                          : user_.begin_apart(*meeting_.link, piece);
  if (why != nullptr) return takes_ = fail(why);
  stage_ = Stage::kPiece;
  piece_in_ = static_cast<std::size_t>(piece.bytes) + 1;
  return true;
}

bool Carrier::take_frames() noexcept {
  const std::span<const std::byte> frames = in_.left().first(static_cast<std::size_t>(head_.bytes));
  const std::string why = user_.took_carried(meeting_.link, frames);
  in_.take(frames.size());
  if (!why.empty()) return takes_ = fail(why);
  stage_ = Stage::kHead;
  return true;
}

bool Carrier::take_piece() noexcept {
  const char* why = nullptr;
  const std::ptrdiff_t came = user_.receive_apart(*meeting_.link, *this, piece_in_, &why);
  if (came < 0) takes_ = fail(why == nullptr ? "" : why);
  if (came <= 0) return false;
  moved_in_ = true;
  piece_in_ -= static_cast<std::size_t>(came);
  if (piece_in_ == 0) stage_ = Stage::kHead;
  return true;
}

// ---- Sending ----

void Carrier::flush() noexcept {
  LinkRef moved;
  take_turn(flushes_, sending_, [&] {
    if (can_send_) pump();
    if (std::exchange(moved_out_, false)) moved = meeting_.link;
  });
  if (moved != nullptr) user_.moved_apart(moved);
}

// Adds bytes to the buffer. `sending_` must be held, and everything in the buffer must have been sent.
void Carrier::put(std::span<const std::byte> bytes) noexcept {
  std::copy(out_.data + out_.at, out_.data + out_.end, out_.data);
  out_.end -= std::exchange(out_.at, 0);
  std::copy(bytes.begin(), bytes.end(), out_.data + out_.end);
  out_.end += bytes.size();
}

void Carrier::pump() noexcept {
  while (!out_.left().empty() || piece_out_ != 0 || fill_out()) {
    if (!push()) return;
  }
}

// Prepares the next block. Returns false if there is nothing to send.
bool Carrier::fill_out() noexcept {
  if (!may_fill_) return false;
  std::byte* const frames = out_.data + Head::kBytes;
  const std::size_t room = out_.size - Head::kBytes;
  std::size_t bytes = meeting_.queue->drain(frames, room);
  if (bytes == 0) {
    meeting_.queue->begin_direct(frames, room);
    user_.more(*meeting_.link);
    bytes = meeting_.queue->end_direct();
    // more() may have put frames into the queue that did not fit `frames`.
    if (bytes == 0) bytes = meeting_.queue->drain(frames, room);
  }
  Head head{.bytes = bytes};
  if (bytes == 0) {
    Piece piece;
    if (!user_.next_apart(*meeting_.link, &piece)) return false;
    head = {Kind::kPiece, piece.bytes, piece.id, piece.offset};
    piece_out_ = static_cast<std::size_t>(piece.bytes) + 1;
  }
  head.write(out_.data);
  out_.at = 0;
  out_.end = Head::kBytes + bytes;
  return true;
}

// Sends as much as possible. Returns false if nothing more can be sent now.
bool Carrier::push() noexcept {
  const std::span<const std::byte> before = out_.left();
  const std::ptrdiff_t went =
      piece_out_ == 0 ? write({&before, 1}) : user_.send_apart(*meeting_.link, *this, before);
  if (went < 0) can_send_ = fail("");
  if (went <= 0) return false;
  const std::size_t first = std::min(static_cast<std::size_t>(went), before.size());
  out_.take(first);
  piece_out_ -= static_cast<std::size_t>(went) - first;
  moved_out_ = moved_out_ || static_cast<std::size_t>(went) > first;
  return !blocked_;
}

// ---- Creation ----

Carriers::~Carriers() {
  if (opened_) functions_.close(module_);
}

std::string Carriers::open(const std::string& host, int64_t lease_ns) noexcept {
  const dist_link_module_options options = {sizeof options, 0, host.empty() ? nullptr : host.c_str(),
                                            lease_ns, &Carrier::kCallbacks};
  char error[512] = "";
  opened_ = functions_.open(&options, &module_, error, sizeof error) == DIST_OK;
  return opened_ ? "" : std::string("cannot use the link module \"") + functions_.name + "\": " + error;
}

CarrierRef Carriers::make(CarrierUser& user, bool sends, uint32_t attempt, const std::string& host,
                          std::string* why) noexcept {
  try {
    auto carrier = std::make_shared<Carrier>(memory_, functions_, user, sends, attempt);
    *why = carrier->listen(module_, host);
    return why->empty() ? carrier : nullptr;
  } catch (const std::bad_alloc&) {
    *why = "out of memory";
    return nullptr;
  }
}

}  // namespace dist::grpc_link

// SPDX-License-Identifier: Apache-2.0
#include "core/comm/worker_round.hpp"

#include <algorithm>

#include "core/base/wire.hpp"

namespace dist {
namespace {

bool done(const Transfer& transfer) noexcept { return transfer.end() == Transfer::End::kDone; }

uint64_t digest_of(std::span<const int> firsts) noexcept {
  uint64_t digest = 0xCBF29CE484222325u;
  for (const int first : firsts) digest = (digest ^ static_cast<uint64_t>(first)) * 0x100000001B3u;
  return digest;
}

bool sizes_vary(const WorkerHeader& header) noexcept {
  return header.payload_bytes == WorkerHeader::kSizesVary;
}

}  // namespace

Status Payload::resize(std::size_t bytes, bool spare) noexcept {
  if (bytes > room_) {
    const std::size_t room = spare && bytes < most_of<std::byte>() / 2 ? bytes * 2 : bytes;
    memory_.free(data_, room_, kAlign);
    room_ = 0;
    bytes_ = 0;
    data_ = static_cast<std::byte*>(memory_.try_allocate(room, kAlign));
    if (data_ == nullptr) return out_of_memory();
    room_ = room;
  }
  bytes_ = bytes;
  return kOk;
}

bool WorkerRound::is_good(Peer& peer) noexcept {
  if (!done(peer.receive_header)) return false;
  if (!peer.read) peer.reading = peer.header.read(peer.header_bytes, own_, own_bytes_);
  peer.read = true;
  return peer.reading == Reading::kGood;
}

WorkerRound::WorkerRound(Memory& memory, Transport& transport, const WorkerMembers& members)
    : transport_(transport),
      members_(members),
      own_sizes_(static_cast<std::size_t>(members.count()), &memory),
      own_size_bytes_(own_sizes_.size() * sizeof(uint64_t), &memory),
      peers_(&memory),
      outgoing_(&memory),
      tables_(&memory),
      incoming_(&memory),
      came_(static_cast<std::size_t>(members.num_members()), &memory),
      payload_transfers_(&memory),
      staging_(memory) {
  for (int w = 0; w < members.num_workers(); ++w) {
    Peer& peer = peers_.emplace_back(memory);
    peer.sizes.resize(static_cast<std::size_t>(members.count_of(w)));
    peer.size_bytes.resize(peer.sizes.size() * sizeof(uint64_t));
    if (w == members.me) continue;
    for (int p = 0; p < members.count_of(w); ++p)
      peer.receive_payloads.push_back(&payload_transfers_.emplace_back());
    for (int p = 0; p < members.count(); ++p)
      peer.send_payloads.push_back(&payload_transfers_.emplace_back());
  }
  for (std::pmr::vector<Payload>* each : {&outgoing_, &tables_}) {
    each->reserve(own_sizes_.size());
    for (int p = 0; p < members.count(); ++p) each->emplace_back(memory);
  }
  incoming_.reserve(static_cast<std::size_t>(members.num_members()));
  for (int p = 0; p < members.num_members(); ++p) incoming_.emplace_back(memory);
}

MessageKey WorkerRound::key(Kind kind, uint32_t part) const noexcept {
  MessageKey key = at_;
  key.series = at_.series * kKinds + kind;
  key.part = part;
  return key;
}

template <class Body>
bool WorkerRound::all_transfers(Body&& body) noexcept {
  for (int w = 0; w < members_.num_workers(); ++w) {
    if (w == members_.me) continue;
    Peer& peer = peers_[static_cast<std::size_t>(w)];
    const auto good = [&](Transfer* each) { return body(w, *each); };
    Transfer* const own[] = {&peer.send_header,   &peer.receive_header, &peer.send_sizes,
                             &peer.receive_sizes, &peer.send_piece,     &peer.receive_piece};
    if (!std::all_of(std::begin(own), std::end(own), good) ||
        !std::all_of(peer.receive_payloads.begin(), peer.receive_payloads.end(), good) ||
        !std::all_of(peer.send_payloads.begin(), peer.send_payloads.end(), good))
      return false;
  }
  return true;
}

void WorkerRound::take_back() noexcept {
  all_transfers([&](int, Transfer& transfer) {
    end_transfer(transport_, transfer);
    return true;
  });
}

void WorkerRound::reset() noexcept {
  take_back();
  phase_ = Phase::kIdle;
  all_transfers([](int, Transfer& transfer) {
    transfer.finish(Transfer::End::kDone);
    return true;
  });
}

bool WorkerRound::is_payload(const Transfer& transfer) noexcept {
  return transfer.message().key.series % kKinds == kPayload;
}

bool WorkerRound::settled() noexcept {
  // A payload that was sent ahead but exceeds the credit waits until its receiver has read the header.
  const bool ahead = phase_ == Phase::kHeaders || phase_ == Phase::kSizes;
  const auto settled = [&](int, const Transfer& transfer) {
    return done(transfer) || (ahead && transfer.end() == Transfer::End::kUnderWay && is_payload(transfer));
  };
  return all_transfers(settled) && transport_.up_to_date() &&
         !(phase_ == Phase::kHeaders && others_know_other_members());
}

// Reports this only if everything that this worker can check itself is correct.
bool WorkerRound::others_know_other_members() noexcept {
  bool differ = false;
  bool right = true;
  each_peer([&](int w, Peer& peer) {
    right = right && is_good(peer) && peer.header.members == members_.count_of(w);
    differ = differ || peer.header.all_members != own_.all_members;
  });
  return differ && right;
}

bool WorkerRound::trouble(int* out_worker, Transfer::End* out_end) noexcept {
  return !all_transfers([&](int w, const Transfer& transfer) {
    *out_worker = w;
    *out_end = transfer.end();
    return *out_end == Transfer::End::kDone || *out_end == Transfer::End::kUnderWay;
  });
}

void WorkerRound::set_polled(bool polled) noexcept {
  polled_ = polled;
  all_transfers([&](int, Transfer& transfer) {
    transfer.polled = polled;
    return true;
  });
}

void WorkerRound::write_header(const Signature& signature, std::size_t most_bytes,
                               const Last& last) noexcept {
  uint64_t payload_bytes = outgoing_[0].bytes();
  bool complete = true;
  for (std::size_t p = 0; p < own_sizes_.size(); ++p) {
    own_sizes_[p] = outgoing_[p].bytes();
    complete = complete && outgoing_[p].complete;
    if (own_sizes_[p] != own_sizes_[0]) payload_bytes = WorkerHeader::kSizesVary;
  }
  own_.last = last.name;
  own_.last_alone_ns = last.alone_ns;
  // Most collectives are like the previous one.
  if (own_.members != 0 && own_.signature.digest == signature.shared_digest && own_.complete == complete &&
      own_.payload_bytes == payload_bytes && own_.staging_bytes == most_bytes)
    return own_.write_last(own_bytes_);
  own_.members = members_.count();
  own_.all_members = digest_of(members_.firsts);
  own_.staging_bytes = most_bytes;
  own_.signature = signature;
  own_.signature.function = nullptr;
  own_.signature.digest = signature.shared_digest;
  own_.payload_bytes = payload_bytes;
  own_.complete = complete;
  own_.write(own_bytes_);
}

void WorkerRound::begin(const MessageKey& at, const Signature& signature, std::size_t most_bytes,
                        const Last& last) noexcept {
  at_ = at;
  passes_ = 0;
  met_ = false;
  write_header(signature, most_bytes, last);
  if (own_.payloads_inside()) {
    std::byte* inside = own_bytes_ + WorkerHeader::kSaidBytes;
    for (const Payload& payload : outgoing_) {
      std::copy_n(payload.data(), payload.bytes(), inside);
      inside += own_.inside_bytes();
    }
  }
  phase_ = Phase::kHeaders;
  const bool polled = at.series == kBlocking;
  if (polled != polled_) set_polled(polled);
  const std::size_t inside =
      own_.payloads_inside() ? own_.inside_bytes() * static_cast<std::size_t>(members_.count()) : 0;
  const bool ahead = own_.complete && !own_.payloads_inside() && reserve_for_alike();
  payloads_sent_ = own_.payloads_inside() || ahead;
  const auto receive = [&](int w, Peer& peer) {
    transport_.receive(w, key(kHeader), peer.header_bytes, WorkerHeader::kBytes, peer.receive_header);
  };
  send_and_receive(
      [&](int w, Peer& peer) {
        peer.send_header.followed = ahead;
        peer.send_header.used = WorkerHeader::kSaidBytes + inside;
        transport_.send(w, key(kHeader), own_bytes_, WorkerHeader::kBytes, peer.send_header);
        if (ahead) send_payloads(w, peer);
        peer.read = false;
      },
      receive);
}

// Reserves memory for the others' payloads, which are as large as this worker's if the others make the same
// call. A worker without memory for them must report that before it sends its own payloads.
bool WorkerRound::reserve_for_alike() noexcept {
  if (sizes_vary(own_)) return false;
  for (int p = 0; p < members_.num_members(); ++p) {
    const bool other = p < members_.first() || p >= members_.first() + members_.count();
    if (other && !incoming_[static_cast<std::size_t>(p)].resize(own_sizes_[0]).ok()) return false;
  }
  return true;
}

void WorkerRound::send_payloads(int worker, Peer& to) noexcept {
  for (std::size_t p = 0; p < to.send_payloads.size(); ++p) {
    const Payload& payload = outgoing_[p];
    if (payload.bytes() == 0) continue;
    to.send_payloads[p]->followed = payloads_sent_ && p + 1 < to.send_payloads.size();
    transport_.send(worker, key(kPayload, static_cast<uint32_t>(p)), payload.data(), payload.bytes(),
                    *to.send_payloads[p]);
  }
}

WorkerRound::Problem WorkerRound::proceed() noexcept {
  switch (phase_) {
    case Phase::kHeaders:
      if (const Problem problem = read_headers(); problem.fault != Fault::kNone) return problem;
      phase_ = Phase::kSizes;
      ask_for_sizes();
      return {};
    case Phase::kSizes: phase_ = Phase::kPayloads; return move_payloads();
    default: phase_ = Phase::kHere; return {};
  }
}

WorkerRound::Problem WorkerRound::read_headers() noexcept {
  complete_ = own_.complete;
  staging_bytes_ = own_.staging_bytes;
  int odd = -1;
  bool agree = true;
  each_peer([&](int w, Peer& peer) {
    if (odd < 0 && (!is_good(peer) || peer.header.members != members_.count_of(w))) odd = w;
    complete_ = complete_ && peer.header.complete;
    staging_bytes_ = std::min<std::size_t>(staging_bytes_, peer.header.staging_bytes);
    agree = agree && peer.header.signature.digest == own_.signature.digest;
  });
  if (odd >= 0) return {Fault::kHeader, odd};
  return {agree ? Fault::kNone : Fault::kDisagreement};
}

// Exchanges the sizes of payloads with workers whose members have payloads of different sizes.
void WorkerRound::ask_for_sizes() noexcept {
  WireWriter writer(own_size_bytes_.data());
  for (const uint64_t bytes : own_sizes_) writer.put(bytes);
  expects_more_ = sizes_vary(own_);
  each_peer_in_turn([&](int w, Peer& peer) {
    expects_more_ = expects_more_ || sizes_vary(peer.header);
    if (sizes_vary(peer.header)) {
      transport_.receive(w, key(kSizeList), peer.size_bytes.data(), peer.size_bytes.size(),
                         peer.receive_sizes);
    }
    if (sizes_vary(own_)) {
      transport_.send(w, key(kSizeList), own_size_bytes_.data(), own_size_bytes_.size(), peer.send_sizes);
    }
  });
}

void WorkerRound::read_sizes() noexcept {
  each_peer([&](int, Peer& peer) {
    WireReader reader(peer.size_bytes.data(), peer.size_bytes.size());
    for (uint64_t& bytes : peer.sizes)
      bytes = sizes_vary(peer.header) ? reader.take<uint64_t>() : peer.header.payload_bytes;
  });
}

WorkerRound::Problem WorkerRound::move_payloads() noexcept {
  read_sizes();
  const uint64_t most = *std::max_element(own_sizes_.begin(), own_sizes_.end()) + kMostBeside;
  Problem problem;
  each_peer([&](int w, const Peer& peer) {
    if (problem.fault == Fault::kNone && *std::max_element(peer.sizes.begin(), peer.sizes.end()) > most)
      problem = {Fault::kTooLong, w};
  });
  each_peer([&](int w, const Peer& peer) {
    for (int p = 0; p < members_.count_of(w) && problem.fault == Fault::kNone; ++p) {
      const std::size_t rank = static_cast<std::size_t>(members_.first_of(w)) + static_cast<std::size_t>(p);
      const auto bytes = static_cast<std::size_t>(peer.sizes[static_cast<std::size_t>(p)]);
      if (!peer.header.payloads_inside()) {
        if (!incoming_[rank].resize(bytes).ok()) problem.fault = Fault::kNoMemory;
        came_[rank] = {incoming_[rank].data(), bytes};
      } else {
        const std::byte* const inside = peer.header_bytes + WorkerHeader::kSaidBytes;
        came_[rank] = {inside + static_cast<std::size_t>(p) * peer.header.inside_bytes(), bytes};
      }
    }
  });
  if (problem.fault != Fault::kNone) return problem;
  expects_more_ = !own_.payloads_inside();
  const auto send = [&](int w, Peer& peer) {
    if (!payloads_sent_) send_payloads(w, peer);
  };
  const auto receive = [&](int w, Peer& peer) {
    expects_more_ = expects_more_ || !peer.header.payloads_inside();
    for (std::size_t p = 0; !peer.header.payloads_inside() && p < peer.receive_payloads.size(); ++p) {
      Payload& payload = incoming_[static_cast<std::size_t>(members_.first_of(w)) + p];
      if (payload.bytes() == 0) continue;
      transport_.receive(w, key(kPayload, static_cast<uint32_t>(p)), payload.data(), payload.bytes(),
                         *peer.receive_payloads[p]);
    }
  };
  send_and_receive(send, receive);
  return {};
}

void WorkerRound::pass(std::span<const Passage> passages) noexcept {
  const MessageKey piece = key(kPiece, passes_++);
  const auto send = [&](int w, Peer& peer) {
    const Passage& passage = passages[static_cast<std::size_t>(w)];
    if (passage.send_bytes != 0) transport_.send(w, piece, passage.send, passage.send_bytes, peer.send_piece);
  };
  const auto receive = [&](int w, Peer& peer) {
    const Passage& passage = passages[static_cast<std::size_t>(w)];
    if (passage.receive_bytes != 0)
      transport_.receive(w, piece, passage.receive, passage.receive_bytes, peer.receive_piece);
  };
  send_and_receive(send, receive);
}

}  // namespace dist

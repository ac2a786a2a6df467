// SPDX-License-Identifier: Apache-2.0
#include "core/collective/worker_collective.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "core/collective/exchange.hpp"
#include "core/collective/partition.hpp"
#include "core/kernel/fp_environment.hpp"

namespace dist {
namespace {

// What lies in a member's payload, in this order; all but the elements has a fixed place:
//
//     Head
//     part and whole of each tensor along the axis, where the collective cuts or joins    2n
//     begins of the splits                                                                members + 1, where given
//     weights                                                                             one a contribution
//     elements of each contribution's tensors, dense, each tensor from a multiple of 64 bytes on
struct Head {
  uint64_t contributions = 0;  // 0: it brings no tensors
  uint64_t offsets = 0;        // 0 or 1: whether it has splits
  uint64_t weighted = 0;       // 0 or 1
  int32_t destination = -1;
  int32_t source = -1;
};

constexpr std::size_t kAlign = 64;
constexpr std::size_t aligned(std::size_t bytes) noexcept { return (bytes + kAlign - 1) / kAlign * kAlign; }

const dist_tensor& like(const Call& call, std::size_t t) noexcept {
  return call.in != nullptr ? call.in[t] : call.out[t];
}

// Walks over what follows the head, with checks of room: what comes from elsewhere is not trusted.
class Reader {
 public:
  Reader(const std::byte* data, std::size_t bytes) noexcept : data_(data), bytes_(bytes) {}
  template <class T>
  const T* take(std::size_t n) noexcept {
    if (n > (bytes_ - at_) / sizeof(T)) {
      good_ = false;
      return nullptr;
    }
    const std::byte* const found = data_ + at_;
    at_ += n * sizeof(T);
    return reinterpret_cast<const T*>(found);
  }
  const std::byte* take_tensor(std::size_t bytes) noexcept {
    const std::size_t begin = aligned(at_);
    if (begin > bytes_ || bytes > bytes_ - begin) {
      good_ = false;
      return nullptr;
    }
    at_ = begin + bytes;
    return data_ + begin;
  }
  bool good() const noexcept { return good_; }
  bool at_end() const noexcept { return at_ == bytes_; }

 private:
  const std::byte* const data_;
  const std::size_t bytes_;
  std::size_t at_ = 0;
  bool good_ = true;
};

// Puts what the member brings into its payload.
Status pack(const Call& call, const Offer& offer, int num_members, Payload& payload) noexcept {
  const bool parts = call.joins() || call.cuts();
  const std::size_t lists = call.in == nullptr ? 0 : call.lists();
  std::size_t bytes = sizeof(Head) + (parts ? 2 * call.n * sizeof(int64_t) : 0);
  const std::size_t offsets = offer.offsets != nullptr ? static_cast<std::size_t>(num_members) + 1 : 0;
  bytes += offsets * sizeof(int64_t) + (offer.weights != nullptr ? lists * sizeof(double) : 0);
  for (std::size_t i = 0; i < lists * call.n; ++i) {
    const dist_tensor& tensor = call.in[i];
    bytes = aligned(bytes) + elements_of(tensor) * dtype_size(tensor.dtype);
  }
  DIST_TRY(payload.resize(bytes));
  std::byte* at = payload.data();
  const auto put = [&](const void* data, std::size_t size) {
    if (size != 0) std::memcpy(at, data, size);
    at += size;
  };
  const Head head{lists, offsets != 0, offer.weights != nullptr, call.destination, call.source};
  put(&head, sizeof head);
  for (std::size_t t = 0; parts && t < call.n; ++t) {
    const int32_t along = call.axis_of(t);
    const int64_t in_size = call.in != nullptr ? call.in[t].shape[along] : 0;
    const int64_t out_size = call.out != nullptr ? call.out[t].shape[along] : 0;
    const int64_t sizes[2] = {call.joins() ? in_size : out_size, call.joins() ? out_size : in_size};
    put(sizes, sizeof sizes);
  }
  put(offer.offsets, offsets * sizeof(int64_t));
  if (offer.weights != nullptr) put(offer.weights, lists * sizeof(double));
  for (std::size_t i = 0; i < lists * call.n; ++i) {
    dist_tensor dense = call.in[i];
    std::byte* const begin = payload.data() + aligned(static_cast<std::size_t>(at - payload.data()));
    std::fill(at, begin, std::byte{});
    dense.data = at = begin;
    dense.strides = nullptr;
    const std::size_t size = elements_of(dense) * dtype_size(dense.dtype);
    if (size != 0) copy_elements(call.in[i], dense);
    at += size;
  }
  return kOk;
}

// The members of all workers.
class AllMembers final : public MemberNames {
 public:
  int seat(int rank) const noexcept override { return rank; }
  Naming naming() const noexcept override { return {}; }
};

// The offers of all members: of this worker's as they lie in their slots, of the others' as their payloads say. The
// tables lie in one payload of the host's memory, since their size depends on the call.
class Offers {
 public:
  explicit Offers(Payload& tables) noexcept : tables_(tables) {}

  Status fill(const Member& member, const WorkerMeeting& meeting, const Call& call,
              int* out_broken) noexcept {
    const auto size = static_cast<std::size_t>(meeting.num_members());
    const int first = meeting.first();
    const int last = first + member.group.size();
    // First how much room the tables take, then the tables.
    std::size_t tensors = 0;
    std::size_t dims = 0;
    for (int p = 0; p < meeting.num_members(); ++p) {
      if (p >= first && p < last) continue;
      Head head;
      if (!read_head(meeting.incoming(p), call, &head)) return broken(p, out_broken);
      tensors += (head.contributions + 1) * call.n;
      for (std::size_t t = 0; t < call.n; ++t) {
        dims += (head.contributions + 1) * static_cast<std::size_t>(like(call, t).ndim);
      }
    }
    DIST_TRY(tables_.resize(size * (sizeof(Offer) + sizeof(Offer*)) + tensors * sizeof(dist_tensor) +
                            dims * sizeof(int64_t)));
    auto* const offers = reinterpret_cast<Offer*>(tables_.data());
    all_ = reinterpret_cast<const Offer**>(offers + size);
    auto* tensor = reinterpret_cast<dist_tensor*>(all_ + size);
    auto* dim = reinterpret_cast<int64_t*>(tensor + tensors);
    for (int p = 0; p < meeting.num_members(); ++p) {
      if (p >= first && p < last) {
        all_[p] = &member.group.slot(member.me, p - first).offer;
        continue;
      }
      auto* const offer = new (&offers[p]) Offer{};
      all_[p] = offer;
      if (!read(meeting.incoming(p), call, meeting.num_members(), *offer, tensor, dim))
        return broken(p, out_broken);
    }
    return kOk;
  }
  const Offer* const* all() const noexcept { return all_; }

 private:
  static Status broken(int rank, int* out_broken) noexcept {
    *out_broken = rank;
    return Status(DIST_INTERNAL);
  }

  static bool read_head(const Payload& payload, const Call& call, Head* out) noexcept {
    if (payload.bytes() < sizeof *out) return false;
    std::memcpy(out, payload.data(), sizeof *out);
    const std::size_t most = call.reduces() ? DIST_MAX_CONTRIBUTIONS : 1;
    return out->contributions <= most && out->offsets <= 1 && out->weighted <= 1 &&
           out->weighted == (call.weights != nullptr && out->contributions != 0 ? 1u : 0u) &&
           out->offsets == (call.splits != nullptr ? 1u : 0u);
  }

  static bool read(const Payload& payload, const Call& call, int num_members, Offer& offer,
                   dist_tensor*& tensor, int64_t*& dim) noexcept {
    Head head;
    std::memcpy(&head, payload.data(), sizeof head);
    Reader reader(payload.data(), payload.bytes());
    reader.take<Head>(1);
    const bool parts = call.joins() || call.cuts();
    const int64_t* const sizes = parts ? reader.take<int64_t>(2 * call.n) : nullptr;
    const int64_t* const offsets =
        head.offsets != 0 ? reader.take<int64_t>(static_cast<std::size_t>(num_members) + 1) : nullptr;
    const double* const weights = head.weighted != 0 ? reader.take<double>(head.contributions) : nullptr;
    if (!reader.good()) return false;
    for (std::size_t i = 0; parts && i < 2 * call.n; ++i) {
      if (sizes[i] < 0) return false;
    }
    for (int r = 0; offsets != nullptr && r < num_members; ++r) {
      if (offsets[r] < 0 || offsets[r + 1] < offsets[r]) return false;
    }
    if (head.destination < -1 || head.destination >= num_members || head.source < -1 ||
        head.source >= num_members)
      return false;
    const std::size_t lists = head.contributions;
    offer.contributions = lists != 0 ? lists : 1;
    offer.weights = weights;
    offer.offsets = offsets;
    offer.destination = static_cast<int16_t>(head.destination);
    offer.source = static_cast<int16_t>(head.source);
    // A side that is not brought still has its sizes.
    const auto describe = [&](std::size_t t, bool in_side) -> dist_tensor& {
      dist_tensor& made = *tensor++;
      made = like(call, t);
      made.strides = nullptr;
      made.data = nullptr;
      std::copy_n(like(call, t).shape, made.ndim, dim);
      if (parts) dim[call.axis_of(t)] = sizes[2 * t + (call.joins() == in_side ? 0 : 1)];
      made.shape = dim;
      dim += made.ndim;
      return made;
    };
    const dist_tensor* const in = tensor;
    for (std::size_t i = 0; i < lists * call.n; ++i) {
      dist_tensor& made = describe(i % call.n, true);
      int64_t elements = 1;
      for (int32_t d = 0; d < made.ndim; ++d) {
        if (__builtin_mul_overflow(elements, made.shape[d], &elements)) return false;
      }
      std::size_t bytes = 0;
      if (__builtin_mul_overflow(static_cast<std::size_t>(elements), dtype_size(made.dtype), &bytes))
        return false;
      made.data = const_cast<std::byte*>(reader.take_tensor(bytes));
      if (!reader.good()) return false;
    }
    if (!reader.at_end()) return false;
    if (offsets != nullptr && (sizes == nullptr || offsets[num_members] != sizes[0])) return false;
    offer.in = lists != 0 ? in : nullptr;
    offer.in_data = lists != 0 && call.n != 0 ? static_cast<const std::byte*>(in[0].data) : nullptr;
    const dist_tensor* const out = tensor;
    for (std::size_t t = 0; t < call.n; ++t) describe(t, false);
    offer.out = out;
    if (parts && call.n != 0) {
      offer.part = sizes[0];
      offer.whole = sizes[1];
    }
    return true;
  }

  Payload& tables_;
  const Offer** all_ = nullptr;
};

Status fold(const Member& member, WorkerMeeting& meeting, const Call& call) noexcept {
  Group& group = member.group;
  if (!group.enter(member.me)) return group.finish(member.me);
  const AllMembers all;
  const int first = meeting.first();
  const int me = first + member.me;
  ErrorRecord why;
  Offers offers(meeting.tables(member.me));
  int broken = -1;
  if (const Status filled = offers.fill(member, meeting, call, &broken); !filled.ok()) {
    why.code = filled.code();
    why.culprit = all.name(broken >= 0 ? broken : me);
    std::snprintf(why.message, sizeof why.message,
                  broken >= 0 ? "what replica %d brought cannot be read"
                              : "replica %d has no memory for what the others brought",
                  why.culprit.number());
    return group.refuse(member.me, refusal(group, call, member.tag, group.sequence(member.me), why));
  }
  const Exchange exchange(call, meeting.num_members(), offers.all(), member.cache_bytes,
                          {first, first + group.size()});
  if (exchange.refuses(all, me, &why)) {
    return group.refuse(member.me, refusal(group, call, member.tag, group.sequence(member.me), why));
  }
  const FpEnvironment environment;
  TaskList::Cursor cursor;
  exchange.run(
      part_of(exchange.units(), static_cast<std::size_t>(group.size()), static_cast<std::size_t>(member.me)),
      cursor, [&] { return !group.poisoned(); });
  return group.finish(member.me);
}

Status check_and_meet(const Member& member, WorkerMeeting& meeting, Call& call) noexcept {
  Group& group = member.group;
  const int size = meeting.num_members();
  DIST_TRY(group.open());
  Signature& signature = group.draft(member.me);
  DIST_TRY(call.check(meeting.first() + member.me, size, signature));
  close_digest(signature, member.tag);
  int64_t offsets[DIST_MAX_REPLICAS + 1];
  if (call.splits != nullptr) call.offset_splits(offsets, size);
  Offer own{};
  call.offer_in(own);
  DIST_TRY(pack(call, own, size, meeting.outgoing(member.me)));
  const Signature stated = signature;
  DIST_TRY(
      group.arrive(member.me, member.timeout_ns, [&] { record_arrival(member, stated, call.bytes, 0); }));
  if (member.me == 0) {
    (void)meeting.meet_and_move(stated, member.timeout_ns);
    group.finish_without_waiting(member.me);
  } else {
    group.await_done(member.me, 0);
  }
  // Poisoned, where the workers did not come together.
  DIST_TRY(group.open());
  if (member.recorder != nullptr) member.recorder->arrived();
  group.draft(member.me) = stated;
  group.outgoing(member.me).offer = own;
  DIST_TRY(group.arrive(member.me, member.timeout_ns));
  return fold(member, meeting, call);
}

}  // namespace

Status worker_collective(const Member& member, WorkerMeeting& meeting, Call& call) noexcept {
  return recorded(member, call.collective, [&] { return check_and_meet(member, meeting, call); });
}

}  // namespace dist

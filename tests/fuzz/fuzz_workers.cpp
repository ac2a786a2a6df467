// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: damaged messages between workers. The first byte selects the kind: a header, a notice, or the
// payload of a member for one of a few calls. Then come bytes, each with its position. If the message can
// still be read, it must be usable: headers and notices are written to the same bytes again, as far as they
// are meaningful, and everything that a descriptor points to lies in its payload or its buffer.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

extern "C" {
#include <cmocka.h>
}
#undef fail  // dist::fail() is used below

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "core/collective/worker_payload.hpp"
#include "core/comm/worker_messages.hpp"
#include "tests/fuzz/bytes.h"

namespace dist {
namespace {

// Changes bytes of a message. The input has two bytes for each position, followed by the new byte. At the
// first position 0xFFFF, the message is cut or extended.
void damage(bytes* in, std::vector<std::byte>* message) {
  while (in->left > 0) {
    const auto at = static_cast<std::size_t>(take_number(in, 2));
    const uint8_t value = take(in);
    if (at == 0xFFFF) {
      message->resize(message->size() + value > 128 ? message->size() + value - 128 : 0);
    } else if (!message->empty()) {
      (*message)[at % message->size()] = static_cast<std::byte>(value);
    }
  }
}

template <class Message>
void check_again(const Message& message, const std::vector<std::byte>& given) {
  // A message that was read is written and read again.
  std::vector<std::byte> first(Message::kBytes);
  std::vector<std::byte> second(Message::kBytes);
  message.write(first.data());
  Message again;
  assert_true(again.read(first.data()) == Reading::kGood);
  again.write(second.data());
  assert_true(first == second);
  assert_memory_equal(first.data(), given.data(), 8);
}

void play_header(bytes* in) {
  WorkerHeader header;
  header.members = 2;
  header.signature.collective = collective_at(1 + take_below(in, index_of(kLastCollective)));
  std::vector<std::byte> message(WorkerHeader::kBytes);
  header.write(message.data());
  const WorkerHeader own = header;
  const std::vector<std::byte> own_message = message;
  damage(in, &message);
  message.resize(WorkerHeader::kBytes);
  const Reading reading = header.read(message.data());
  // Reading a header next to this worker's own gives the same result as reading only the header.
  WorkerHeader beside;
  assert_true(beside.read(message.data(), own, own_message.data()) == reading);
  if (reading == Reading::kOtherVersion) assert_true(header.version != kWorkerVersion);
  if (reading != Reading::kGood) return;
  const Signature& s = header.signature;
  assert_true(s.collective > Collective::kNone && s.collective <= kLastCollective);
  assert_true(s.ndim >= 0 && s.ndim <= DIST_MAX_NDIM && s.function == nullptr);
  assert_true(strnlen(s.tag, sizeof s.tag) < sizeof s.tag);
  assert_true(header.last >= -1 && header.last_alone_ns >= -1);
  char words[512];
  describe(s, words, sizeof words);
  name_round(s, 1, words, sizeof words);
  check_again(header, message);
  std::vector<std::byte> first(WorkerHeader::kBytes);
  std::vector<std::byte> second(WorkerHeader::kBytes);
  header.write(first.data());
  beside.write(second.data());
  assert_true(first == second);
}

void play_notice(bytes* in) {
  WorkerNotice notice;
  notice.record.code = DIST_ABORTED;
  copy_text(notice.record.message, "all_reduce #1: worker 1 has left");
  std::vector<std::byte> message(WorkerNotice::kBytes);
  notice.write(message.data());
  damage(in, &message);
  message.resize(WorkerNotice::kBytes);
  if (notice.read(message.data()) != Reading::kGood) return;
  assert_non_null(known_status_name(notice.record.code));
  (void)dist::fail(notice.record);
  check_again(notice, message);
}

// ---- Payloads ----

constexpr int kMembers = 3;
constexpr std::size_t kTensors = 2;

struct Question {
  float in[kTensors][12] = {};
  float out[kTensors][12] = {};
  int64_t in_shape[kTensors][2];
  int64_t out_shape[kTensors][2];
  dist_tensor tensors[2][2 * kTensors];
  double weights[2] = {1, 2};
  int64_t splits[kMembers] = {1, 1, 1};
  int64_t offsets[kMembers + 1];
  Call call;
  CallDescriptor descriptor{};

  explicit Question(bytes* in_bytes) {
    // @every collective but NONE, RETURN, BARRIER, MERGE_CALL, REDUCE_APPLY, HALO_EXCHANGE, RESHARD
    constexpr Collective kAll[] = {Collective::kAllReduce, Collective::kReduce,   Collective::kReduceScatter,
                                   Collective::kBroadcast, Collective::kScatter,  Collective::kAllGather,
                                   Collective::kGather,    Collective::kAllToAll, Collective::kPermute,
                                   Collective::kScan};
    call.collective = kAll[take_below(in_bytes, std::size(kAll))];
    const CollectiveTraits& traits = call.traits();
    const uint8_t flags = take(in_bytes);
    const bool cuts = traits.cuts;
    const bool joins = traits.joins;
    for (std::size_t t = 0; t < kTensors; ++t) {
      in_shape[t][0] = joins && !cuts ? 1 : 3;
      out_shape[t][0] = cuts && !joins ? 1 : 3;
      in_shape[t][1] = out_shape[t][1] = 2;
      for (std::size_t list = 0; list < 2; ++list)
        tensors[0][list * kTensors + t] = {in[t], DIST_F32, 2, in_shape[t], nullptr};
      tensors[1][t] = {out[t], DIST_F32, 2, out_shape[t], nullptr};
    }
    call.in = tensors[0];
    call.out = tensors[1];
    call.n = static_cast<std::size_t>(take_below(in_bytes, kTensors + 1));
    if (traits.reduces) call.op = (flags & 1) != 0 && !traits.prefixes ? DIST_REDUCE_MEAN : DIST_REDUCE_SUM;
    if (call.op == DIST_REDUCE_MEAN && (flags & 2) != 0) call.weights = weights;
    if (traits.reduces && !traits.prefixes && (flags & 4) != 0) call.contributions = 2;
    if (traits.swaps() && (flags & 8) != 0) call.splits = splits;
    if (traits.rooted()) call.root = 0;
    if (traits.prefixes) call.kind = DIST_SCAN_INCLUSIVE;
    if (traits.pairs()) call.destination = call.source = 0;
    Signature signature;
    assert_true(call.check(0, kMembers, signature).ok());
    if (call.splits != nullptr) call.offset_splits(offsets, kMembers);
    call.describe_in(descriptor);
  }
};

bool inside(const void* data, std::size_t bytes, const void* block, std::size_t block_bytes) {
  const auto at = reinterpret_cast<uintptr_t>(data);
  const auto begin = reinterpret_cast<uintptr_t>(block);
  return at >= begin && bytes <= block_bytes && at - begin <= block_bytes - bytes;
}

void check_descriptor(const CallDescriptor& descriptor, const Call& call, bool complete,
                      const std::vector<std::byte>& payload, const std::byte* memory, std::size_t room) {
  assert_true(descriptor.contributions >= 1 && descriptor.contributions <= most_contributions(kMembers));
  if (call.traits().pairs()) {
    assert_true(descriptor.destination >= -1 && descriptor.destination < kMembers);
    assert_true(descriptor.source >= -1 && descriptor.source < kMembers);
  }
  for (std::size_t j = 0; descriptor.weights != nullptr && j < descriptor.contributions; ++j)
    assert_true(descriptor.weights[j] >= 0 && !std::isinf(descriptor.weights[j]));
  for (int r = 0; descriptor.offsets != nullptr && r < kMembers; ++r)
    assert_true(descriptor.offsets[r] <= descriptor.offsets[r + 1]);
  const std::size_t lists = complete ? descriptor.contributions : 1;
  for (std::size_t i = 0; descriptor.in != nullptr && i < lists * call.n; ++i) {
    const dist_tensor& tensor = descriptor.in[i];
    assert_true(inside(&tensor, sizeof tensor, memory, room));
    assert_true(inside(tensor.shape, sizeof(int64_t) * 2, memory, room) && tensor.shape[0] >= 0);
    if (complete)
      assert_true(inside(tensor.data, elements_of(tensor) * sizeof(float), payload.data(), payload.size()));
  }
}

void play_payload(bytes* in) {
  Question question(in);
  const int rank = take_below(in, kMembers);
  Ref<Memory> memory = Ref<Memory>::adopt(Memory::create({}));
  Payload own(*memory);
  own.complete = take(in) % 2 != 0;
  Call& call = question.call;
  // Packs the payload as the member with this rank would.
  const dist_tensor* const given = call.in;
  if (!call.gives(rank)) call.in = nullptr;
  assert_true(pack_payload(call, question.descriptor, kMembers, own).ok());
  call.in = given;
  std::vector<std::byte> message(own.data(), own.data() + own.bytes());
  const std::size_t untouched = in->left;
  damage(in, &message);
  // A copy of exactly the payload's size, so that sanitizers detect reads past its end.
  const std::vector<std::byte> exact(message);
  const PayloadReader reader(call, kMembers, own.complete);
  const std::span<const std::byte> payload(exact.data(), exact.size());
  Room counted;
  CallDescriptor descriptor{};
  const bool readable = reader.read(rank, payload, counted, &descriptor);
  if (untouched == 0) assert_true(readable);
  if (!readable) return;
  auto tables = std::make_unique<int64_t[]>(counted.used() / sizeof(int64_t));
  auto* const bytes_of_tables = reinterpret_cast<std::byte*>(tables.get());
  Room room(bytes_of_tables);
  const bool read = reader.read(rank, payload, room, &descriptor);
  assert_true(room.used() <= counted.used());
  if (untouched == 0) assert_true(read);
  if (read) check_descriptor(descriptor, call, own.complete, exact, bytes_of_tables, counted.used());
}

}  // namespace
}  // namespace dist

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  bytes in = {data, size};
  switch (take(&in) % 3) {
    case 0: dist::play_header(&in); break;
    case 1: dist::play_notice(&in); break;
    default: dist::play_payload(&in);
  }
  return 0;
}

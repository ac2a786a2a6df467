// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: data of other processes in remote calls. If the first byte is even, the rest is a message. It
// must be rejected, or parsed to a value whose tensors lie inside it and which survives a round trip. If the
// first byte is odd, the rest contains frames for one end of a link. The memory that the end keeps must be
// bounded, and nothing may leak.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

extern "C" {
#include <cmocka.h>
}
#undef fail

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/net/grpc/call_frames.hpp"
#include "core/net/rpc/message.hpp"
#include "tests/fuzz/bytes.h"

namespace dist {
namespace {

using namespace grpc_link;

Ref<CallMessage> message_of(Memory& memory, const void* data, std::size_t bytes) {
  Ref<CallMessage> message = CallMessage::create(memory, bytes);
  assert_true(message.get() != nullptr);
  if (bytes != 0) std::memcpy(message->data(), data, bytes);
  return message;
}

// Describes a value as text. Equal values have equal texts.
void describe(const Value& value, std::string* words) {
  *words += std::to_string(value.kind());
  if (value.kind() == DIST_VALUE_TENSOR) {
    const dist_tensor tensor = value.tensor();
    *words += "t" + std::to_string(tensor.dtype) + ":";
    for (int32_t i = 0; i < tensor.ndim; ++i) *words += std::to_string(tensor.shape[i]) + ",";
    // Reads all bytes, so that sanitizers detect wrong addresses.
    const auto* const at = static_cast<const char*>(tensor.data);
    words->append(at, elements_of(tensor) * dtype_size(tensor.dtype));
  }
  if (value.text() != nullptr) *words += value.text();
  for (std::size_t i = 0; i < value.items().size(); ++i) {
    if (value.kind() == DIST_VALUE_DICT) *words += value.key(i);
    *words += '(';
    describe(*value.items()[i], words);
    *words += ')';
  }
}

void play_message(Memory& memory, const uint8_t* data, std::size_t bytes) {
  std::string_view method;
  ValueRef value;
  {
    const Ref<CallMessage> message = message_of(memory, data, bytes);
    if (!read_message(memory, message, &method, &value).ok()) return;
    assert_true(method.size() <= kMostMethodBytes);
  }
  // The tensors keep the message's memory alive; the method's name does not.
  std::string words;
  describe(*value, &words);
  Ref<CallParts> parts;
  assert_true(write_message(memory, "again", value.get(), &parts).ok());
  std::vector<std::byte> whole;
  for (const auto& each : parts->parts()) whole.insert(whole.end(), each.begin(), each.end());
  assert_int_equal(whole.size(), parts->bytes());
  ValueRef again;
  const Ref<CallMessage> second = message_of(memory, whole.data(), whole.size());
  assert_true(read_message(memory, second, &method, &again).ok());
  assert_true(method == "again");
  std::string same;
  describe(*again, &same);
  assert_true(words == same);
}

void play_frames(Memory& memory, bytes* in, bool serves) {
  constexpr CallLimits kLimits = {.message_bytes = 4096, .bytes = 8192, .calls = 4, .clients = 1};
  CallReceiver receiver(memory, serves, kLimits);
  FrameReader reader;
  std::size_t held = 0;
  bool broken = false;
  while (in->left > 0 && !broken) {
    const uint8_t step = take(in);
    if (!serves && step % 4 == 0) {
      receiver.expect(step / 4 % 8);
    } else if (!serves && step % 4 == 1) {
      receiver.forget(step / 4 % 8);
    } else {
      Frame frame;
      static constexpr FrameKind kKinds[] = {FrameKind::kCall,   FrameKind::kCallData,   FrameKind::kTakeBack,
                                             FrameKind::kAnswer, FrameKind::kAnswerData, FrameKind::kBeat,
                                             FrameKind::kOffer,  FrameKind::kCallData};
      frame.kind = kKinds[step / 4 % 8];
      frame.id = take(in) % 8;
      frame.bytes = take_number(in, 2);
      frame.offset = take_number(in, 1 + step % 2);
      if ((step & 0x80) != 0) frame.bytes = static_cast<uint64_t>(take_hostile(in));
      std::byte header[Frame::kBytes];
      frame.write(header);
      broken = reader.feed(header, sizeof header, receiver) != nullptr;
      const auto data =
          std::vector<std::byte>(static_cast<std::size_t>(std::min<uint64_t>(frame.data_bytes(), 70'000)));
      if (!broken && !data.empty()) broken = reader.feed(data.data(), data.size(), receiver) != nullptr;
      if (!reader.between_frames()) broken = true;
    }
    for (CallReceiver::Event& each : receiver.take_events()) {
      if (each.what != CallReceiver::What::kWhole) continue;
      assert_true(each.message->bytes() <= kLimits.message_bytes);
      held += each.message->bytes();
      // Some messages are released at once and others later.
      if (step % 3 == 0 || held > kLimits.bytes / 2) receiver.let_go(held), held = 0;
    }
    assert_true(memory.held() < 64 * 1024);
  }
  receiver.begin_anew();
}

}  // namespace
}  // namespace dist

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  bytes in = {data, size};
  const uint8_t first = take(&in);
  const auto memory = dist::Ref<dist::Memory>::adopt(dist::Memory::create({}));
  const std::size_t before = memory->held();
  if (first % 2 == 0) {
    dist::play_message(*memory, in.at, in.left);
  } else {
    dist::play_frames(*memory, &in, first % 4 == 1);
  }
  assert_int_equal(memory->held(), before);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "core/net/grpc/frame.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/wire.hpp"

namespace dist::grpc_link {
namespace {

// The fields that a kind uses.
struct Fields {
  const char* name;
  bool id, key, bytes, offset, data;
};
constexpr Fields kFields[] = {
    {"none", false, false, false, false, false},      {"message", false, true, true, false, true},
    {"offer", true, true, true, false, false},        {"ahead", true, false, true, false, true},
    {"chunk", true, false, true, true, true},         {"drop", true, false, false, false, false},
    {"bye", false, false, false, false, false},       {"grant", true, false, false, false, false},
    {"revoke", true, false, false, false, false},     {"misfit", true, false, false, false, false},
    {"forgotten", true, false, false, false, false},  {"credit", false, false, true, false, false},
    {"bye taken", false, false, false, false, false}, {"leaving", false, false, false, false, false},
    {"beat", true, false, false, true, false},        {"here", true, false, true, false, true},
    {"lost", true, false, true, true, true},          {"left", true, false, false, true, false},
    {"formed", true, false, true, false, true},       {"call", true, false, true, true, false},
    {"call's data", true, false, true, true, true},   {"taken back", true, false, false, false, false},
    {"answer", true, false, true, true, false},       {"answer's data", true, false, true, true, true},
};
static_assert(sizeof kFields / sizeof *kFields == static_cast<std::size_t>(FrameKind::kEnd));

const Fields& fields_of(FrameKind kind) noexcept { return kFields[static_cast<std::size_t>(kind)]; }

}  // namespace

const char* name_of(FrameKind kind) noexcept { return fields_of(kind).name; }

uint64_t Frame::data_bytes() const noexcept { return fields_of(kind).data ? bytes : 0; }

void Frame::write(std::byte* to) const noexcept {
  WireWriter out(to);
  out.put(static_cast<uint32_t>(kind));
  out.put(key.generation);
  out.put(key.run);
  out.put(key.group);
  out.put(key.series);
  out.put(key.part);
  out.put(key.number);
  out.put(id);
  out.put(bytes);
  out.put(offset);
}

bool Frame::read(const std::byte* from) noexcept {
  WireReader in(from, kBytes);
  kind = static_cast<FrameKind>(in.take_in<uint32_t>(1, static_cast<uint32_t>(FrameKind::kEnd) - 1));
  key.generation = in.take<uint32_t>();
  key.run = in.take<uint32_t>();
  key.group = in.take<int32_t>();
  key.series = in.take<uint32_t>();
  key.part = in.take<uint32_t>();
  key.number = in.take<uint64_t>();
  id = in.take<uint64_t>();
  bytes = in.take_in<uint64_t>(0, kMostMessageBytes);
  offset = in.take_in<uint64_t>(0, kMostMessageBytes);
  if (!in.good()) return false;
  const Fields& has = fields_of(kind);
  return (has.id || id == 0) && (has.key || key == MessageKey{}) && (has.bytes || bytes == 0) &&
         (has.offset || offset == 0);
}

const char* FrameReader::feed(const std::byte* data, std::size_t bytes, FrameTaker& taker) noexcept {
  while (bytes != 0) {
    if (header_bytes_ < Frame::kBytes) {
      const std::size_t some = std::min(bytes, Frame::kBytes - header_bytes_);
      std::memcpy(header_ + header_bytes_, data, some);
      header_bytes_ += some;
      data += some;
      bytes -= some;
      if (header_bytes_ < Frame::kBytes) return nullptr;
      if (!frame_.read(header_)) return "a frame with an invalid header";
      to_ = nullptr;
      if (const char* const why = taker.begin(frame_, &to_); why != nullptr) return why;
      left_ = frame_.data_bytes();
    }
    const auto some = static_cast<std::size_t>(std::min<uint64_t>(bytes, left_));
    if (some != 0) {
      if (to_ != nullptr) {
        std::memcpy(to_, data, some);
        to_ += some;
      }
      data += some;
      bytes -= some;
      left_ -= some;
    }
    if (left_ == 0) {
      header_bytes_ = 0;
      taker.finish(frame_);
    }
  }
  return nullptr;
}

}  // namespace dist::grpc_link

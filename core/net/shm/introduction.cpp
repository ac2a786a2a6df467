// SPDX-License-Identifier: Apache-2.0
#include "core/net/shm/introduction.hpp"

#include <cstring>
#include <span>

#include "core/base/wire.hpp"

namespace dist::shm {
namespace {

void put(WireWriter& out, std::span<const std::byte> bytes) noexcept {
  for (const std::byte each : bytes) out.put(static_cast<uint8_t>(each));
}

void take(WireReader& in, std::span<std::byte> bytes) noexcept {
  if (const std::byte* const from = in.take_bytes(bytes.size()); from != nullptr)
    std::memcpy(bytes.data(), from, bytes.size());
}

bool begins_well(WireReader& in) noexcept {
  return in.take<uint32_t>() == kMagic && in.take<uint32_t>() == kVersion;
}

}  // namespace

void Introduction::write(std::byte* to) const noexcept {
  WireWriter out(to);
  out.put(kMagic);
  out.put(kVersion);
  out.put(willing);
  put(out, boot);
  out.put(credit);
  out.put(name);
  put(out, token);
  out.put(reason);
}

bool Introduction::read(const std::byte* from) noexcept {
  WireReader in(from, kBytes);
  if (!begins_well(in)) return false;
  willing = in.take<bool>();
  take(in, boot);
  credit = in.take<uint64_t>();
  in.take(name);
  take(in, token);
  in.take(reason);
  return in.good();
}

void Handshake::write(std::byte* to) const noexcept {
  WireWriter out(to);
  out.put(kMagic);
  out.put(kVersion);
  out.put(worker);
  out.put(bytes);
  out.put(salt);
  out.put(address);
  put(out, own);
  put(out, other);
}

bool Handshake::read(const std::byte* from) noexcept {
  WireReader in(from, kBytes);
  if (!begins_well(in)) return false;
  worker = in.take<int32_t>();
  for (uint64_t* const each : {&bytes, &salt, &address}) *each = in.take<uint64_t>();
  take(in, own);
  take(in, other);
  return in.good();
}

void Outcome::write(std::byte* to) const noexcept {
  WireWriter out(to);
  out.put(kMagic);
  out.put(works);
  out.put(reason);
}

bool Outcome::read(const std::byte* from) noexcept {
  WireReader in(from, kBytes);
  if (in.take<uint32_t>() != kMagic) return false;
  works = in.take<bool>();
  in.take(reason);
  return in.good();
}

}  // namespace dist::shm

// SPDX-License-Identifier: Apache-2.0
#include "core/comm/worker_messages.hpp"

#include <bit>
#include <cstring>

#include "core/base/wire.hpp"

namespace dist {
namespace {

// Where a header's magic number and version end, and where the fields begin that are equal in similar
// headers.
constexpr std::size_t kLastAt = 2 * sizeof(uint32_t);
constexpr std::size_t kAlikeAt = kLastAt + sizeof(int32_t) + sizeof(int64_t);

// Elements travel as they lie in memory.
constexpr bool kLittleEndian = std::endian::native == std::endian::little;

Reading begin(WireReader& reader, uint32_t* version) noexcept {
  if (reader.take<uint32_t>() != kWorkerMagic) return Reading::kBad;
  *version = reader.take<uint32_t>();
  return *version == kWorkerVersion ? Reading::kGood : Reading::kOtherVersion;
}

void put(WireWriter& writer, const Signature& s) noexcept {
  writer.put(static_cast<int32_t>(s.collective));
  for (const int32_t each : {s.op, s.dtype, s.root, s.kind, s.element_bytes, s.axis, s.ndim})
    writer.put(each);
  writer.put(static_cast<int32_t>(s.returned));
  writer.put(s.contributes);
  writer.put(s.weighted);
  writer.put(s.numerics);
  writer.put(s.asynchronous);
  for (const int64_t each : s.shape) writer.put(each);
  writer.put(s.tensors);
  writer.put(s.elements);
  writer.put(s.digest);
  writer.put(s.tag);
}

void take_last(WireReader& reader, WorkerHeader& header) noexcept {
  header.last = reader.take_in<int32_t>(-1, INT32_MAX);
  header.last_alone_ns = reader.take_in<int64_t>(-1, INT64_MAX);
}

// Numbers that are only printed are not validated.
void take(WireReader& reader, Signature& s) noexcept {
  s.collective = static_cast<Collective>(
      reader.take_in<int32_t>(DIST_COLLECTIVE_ALL_REDUCE, static_cast<int32_t>(kLastCollective)));
  for (int32_t* each : {&s.op, &s.dtype, &s.root}) *each = reader.take<int32_t>();
  const bool merges = s.collective == Collective::kMergeCall;
  s.kind =
      merges ? reader.take_in<int32_t>(0, static_cast<int32_t>(MergeFor::kUpdate)) : reader.take<int32_t>();
  for (int32_t* each : {&s.element_bytes, &s.axis}) *each = reader.take<int32_t>();
  s.ndim = reader.take_in<int32_t>(0, DIST_MAX_NDIM);
  s.returned = static_cast<dist_status>(reader.take<int32_t>());
  s.contributes = reader.take<bool>();
  s.weighted = reader.take<bool>();
  s.numerics = reader.take<int8_t>();
  s.asynchronous = reader.take<int8_t>();
  for (int64_t& each : s.shape) each = reader.take<int64_t>();
  s.tensors = reader.take<int64_t>();
  s.elements = reader.take<int64_t>();
  s.digest = reader.take<uint64_t>();
  reader.take(s.tag);
}

}  // namespace

void WorkerHeader::write(std::byte* to) const noexcept {
  WireWriter writer(to);
  writer.put(kWorkerMagic);
  writer.put(version);
  write_last(to);
  writer = WireWriter(to + kAlikeAt);
  writer.put(members);
  writer.put(all_members);
  writer.put(kLittleEndian);
  writer.put(complete);
  writer.put(payload_bytes);
  writer.put(staging_bytes);
  put(writer, signature);
  writer.fill(to + kSaidBytes);
}

void WorkerHeader::write_last(std::byte* to) const noexcept {
  WireWriter writer(to + kLastAt);
  writer.put(last);
  writer.put(last_alone_ns);
}

Reading WorkerHeader::read(const std::byte* from) noexcept {
  *this = WorkerHeader{};
  WireReader reader(from, kSaidBytes);
  if (const Reading reading = begin(reader, &version); reading != Reading::kGood) return reading;
  take_last(reader, *this);
  members = reader.take<int32_t>();
  all_members = reader.take<uint64_t>();
  const bool same_order = reader.take<bool>() == kLittleEndian;
  complete = reader.take<bool>();
  payload_bytes = reader.take<uint64_t>();
  staging_bytes = reader.take<uint64_t>();
  take(reader, signature);
  return reader.good() && same_order ? Reading::kGood : Reading::kBad;
}

Reading WorkerHeader::read(const std::byte* from, const WorkerHeader& own,
                           const std::byte* own_bytes) noexcept {
  if (std::memcmp(from, own_bytes, kLastAt) != 0 ||
      std::memcmp(from + kAlikeAt, own_bytes + kAlikeAt, kSaidBytes - kAlikeAt) != 0)
    return read(from);
  *this = own;
  WireReader reader(from + kLastAt, kAlikeAt - kLastAt);
  take_last(reader, *this);
  return reader.good() ? Reading::kGood : Reading::kBad;
}

void WorkerNotice::write(std::byte* to) const noexcept {
  WireWriter writer(to);
  writer.put(kWorkerMagic);
  writer.put(kWorkerVersion);
  writer.put(completed);
  writer.put(begun);
  writer.put(planned);
  writer.put(reported);
  writer.put(parts);
  writer.put(failed);
  writer.put(announced);
  writer.put(static_cast<int32_t>(record.code));
  writer.put(number(record.culprit.replica));
  for (const int32_t each :
       {record.culprit.logical_device, record.culprit.worker, record.collective, record.group, record.inside})
    writer.put(each);
  writer.put(record.of_all);
  writer.put(record.sequence);
  writer.put(record.message);
  writer.put(record.tag);
  writer.put(record.expected);
  writer.put(record.received);
  writer.put(record.hint);
}

Reading WorkerNotice::read(const std::byte* from) noexcept {
  *this = WorkerNotice{};
  WireReader reader(from, kBytes);
  uint32_t version = 0;
  if (const Reading reading = begin(reader, &version); reading != Reading::kGood) return reading;
  completed = reader.take<uint64_t>();
  begun = reader.take<uint64_t>();
  planned = reader.take<uint64_t>();
  reported = reader.take<bool>();
  parts = reader.take<uint64_t>();
  failed = reader.take<uint64_t>();
  announced = reader.take<uint32_t>();
  record.code = static_cast<dist_status>(reader.take<int32_t>());
  record.culprit.replica = GlobalReplica{reader.take<int32_t>()};
  for (int32_t* each : {&record.culprit.logical_device, &record.culprit.worker, &record.collective,
                        &record.group, &record.inside})
    *each = reader.take<int32_t>();
  record.of_all = reader.take<bool>();
  record.sequence = reader.take<int64_t>();
  reader.take(record.message);
  reader.take(record.tag);
  reader.take(record.expected);
  reader.take(record.received);
  reader.take(record.hint);
  // A status without a name would explain nothing.
  const bool named = known_status_name(record.code) != nullptr;
  return reader.good() && named && reader.left() == 0 ? Reading::kGood : Reading::kBad;
}

}  // namespace dist

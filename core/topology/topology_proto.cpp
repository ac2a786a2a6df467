// SPDX-License-Identifier: Apache-2.0
#include "core/topology/topology_proto.hpp"

#include <utility>

#include "core/topology/mesh.hpp"

namespace dist {
namespace {

enum WireType : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5,
};
enum Field : uint32_t {
  kMeshShape = 1,
  kNumTasks = 2,
  kNumDevicesPerTask = 3,
  kDeviceCoordinates = 4,
  kHardwareFeature = 5,
};
constexpr uint32_t kTypeBits = 3;
constexpr uint32_t tag_of(Field field, WireType type) { return field << kTypeBits | type; }

constexpr std::size_t kMaxVarintBytes = 10;
constexpr std::size_t kMaxShortBytes = 5;  // of a tag or a length, which have 32 bits
constexpr int kMaxDepth = 100;             // nesting of groups, as in protobuf

// ---- Writing

// Sign-extended to 64 bits, so that a negative number takes ten bytes.
constexpr uint64_t as_varint(int32_t number) noexcept {
  return static_cast<uint64_t>(static_cast<int64_t>(number));
}

std::size_t varint_bytes(uint64_t number) noexcept {
  std::size_t bytes = 1;
  for (; number >= 0x80; number >>= 7) ++bytes;
  return bytes;
}

class Writer {
 public:
  explicit Writer(std::pmr::memory_resource* memory) : bytes_(memory) {}

  // proto3 omits fields that are 0.
  void number(Field field, int32_t number) {
    if (number == 0) return;
    varint(tag_of(field, kVarint));
    varint(as_varint(number));
  }
  void packed(Field field, std::span<const int32_t> numbers) {
    if (numbers.empty()) return;
    std::size_t length = 0;
    for (const int32_t number : numbers) length += varint_bytes(as_varint(number));
    bytes_.reserve(bytes_.size() + 1 + kMaxVarintBytes + length);
    varint(tag_of(field, kBytes));
    varint(length);
    for (const int32_t number : numbers) varint(as_varint(number));
  }
  std::pmr::vector<uint8_t> take() { return std::move(bytes_); }

 private:
  void varint(uint64_t number) {
    for (; number >= 0x80; number >>= 7) bytes_.push_back(static_cast<uint8_t>(number | 0x80));
    bytes_.push_back(static_cast<uint8_t>(number));
  }

  std::pmr::vector<uint8_t> bytes_;
};

// ---- Reading

Status corrupt(const char* what) noexcept {
  return invalid_argument("the bytes are no serialized topology: %s", what);
}

class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) noexcept : bytes_(bytes) {}

  bool at_end() const noexcept { return at_ == bytes_.size(); }

  Status varint(uint64_t* out) noexcept {
    uint64_t number = 0;
    for (std::size_t i = 0; i < kMaxVarintBytes; ++i) {
      if (at_end()) return corrupt("they end within a number");
      const uint64_t byte = bytes_[at_++];
      number |= (byte & 0x7F) << 7 * i;
      if (byte < 0x80) {
        *out = number;
        return kOk;
      }
    }
    return corrupt("a number has more than 10 bytes");
  }

  Status tag(uint32_t* out) noexcept {
    DIST_TRY(short_varint(out));
    return *out >> kTypeBits == 0 ? corrupt("there is no field 0") : kOk;
  }

  // Reads a length and returns the bytes that follow.
  Status bytes(std::span<const uint8_t>* out) noexcept {
    uint32_t length = 0;
    DIST_TRY(short_varint(&length));
    if (length > bytes_.size() - at_) return corrupt("they end within a field");
    *out = bytes_.subspan(at_, length);
    at_ += length;
    return kOk;
  }

  // Skips a field whose tag has been read, including all fields of a group.
  Status skip(uint32_t tag, int depth) noexcept {
    uint64_t number = 0;
    std::span<const uint8_t> inner;
    switch (tag & ((1u << kTypeBits) - 1)) {
      case kVarint: return varint(&number);
      case kFixed64: return skip_bytes(8);
      case kBytes: return bytes(&inner);
      case kFixed32: return skip_bytes(4);
      case kStartGroup: return skip_group(tag >> kTypeBits, depth);
      case kEndGroup: return corrupt("a group ends that did not begin");
      default: return corrupt("there is no such type of field");
    }
  }

 private:
  Status short_varint(uint32_t* out) noexcept {
    const std::size_t begin = at_;
    uint64_t number = 0;
    DIST_TRY(varint(&number));
    if (number > UINT32_MAX || at_ - begin > kMaxShortBytes)
      return corrupt("a field's number or length has more than 32 bits");
    *out = static_cast<uint32_t>(number);
    return kOk;
  }

  Status skip_bytes(std::size_t count) noexcept {
    if (count > bytes_.size() - at_) return corrupt("they end within a field");
    at_ += count;
    return kOk;
  }

  // NOLINTNEXTLINE(misc-no-recursion): kMaxDepth bounds it
  Status skip_group(uint32_t field, int depth) noexcept {
    if (depth == kMaxDepth) return corrupt("groups are nested too deep");
    for (;;) {
      uint32_t inner = 0;
      DIST_TRY(tag(&inner));
      if (inner == (field << kTypeBits | kEndGroup)) return kOk;
      DIST_TRY(skip(inner, depth + 1));
    }
  }

  std::span<const uint8_t> bytes_;
  std::size_t at_ = 0;
};

constexpr std::size_t kMaxNumbers = kMaxPositions * kMeshNdim;

Status append(uint64_t number, std::pmr::vector<int32_t>* out) {
  if (out->size() == kMaxNumbers)
    return invalid_argument("the serialized topology has more than %zu numbers in a field", kMaxNumbers);
  out->push_back(static_cast<int32_t>(static_cast<uint32_t>(number)));
  return kOk;
}

// Reads one number, or several packed ones: a writer may use either.
Status read_numbers(Reader& reader, bool packed, std::pmr::vector<int32_t>* out) {
  uint64_t number = 0;
  if (!packed) {
    DIST_TRY(reader.varint(&number));
    return append(number, out);
  }
  std::span<const uint8_t> bytes;
  DIST_TRY(reader.bytes(&bytes));
  for (Reader numbers(bytes); !numbers.at_end();) {
    DIST_TRY(numbers.varint(&number));
    DIST_TRY(append(number, out));
  }
  return kOk;
}

Status read_number(Reader& reader, int32_t* out) noexcept {
  uint64_t number = 0;
  DIST_TRY(reader.varint(&number));
  *out = static_cast<int32_t>(static_cast<uint32_t>(number));
  return kOk;
}

// The content is ignored, but it must be a valid message for the whole to be valid.
Status check_message(Reader& reader) noexcept {
  std::span<const uint8_t> bytes;
  DIST_TRY(reader.bytes(&bytes));
  for (Reader fields(bytes); !fields.at_end();) {
    uint32_t tag = 0;
    DIST_TRY(fields.tag(&tag));
    DIST_TRY(fields.skip(tag, 1));
  }
  return kOk;
}

}  // namespace

std::pmr::vector<uint8_t> serialize_topology(std::span<const int32_t> mesh_shape,
                                             std::span<const int32_t> device_coordinates, int32_t num_tasks,
                                             int32_t num_devices_per_task,
                                             std::pmr::memory_resource* memory) {
  Writer writer(memory);
  writer.packed(kMeshShape, mesh_shape);
  writer.number(kNumTasks, num_tasks);
  writer.number(kNumDevicesPerTask, num_devices_per_task);
  writer.packed(kDeviceCoordinates, device_coordinates);
  return writer.take();
}

Status parse_topology(std::span<const uint8_t> bytes, TopologyFields* out) {
  if (bytes.size() > kMaxSerializedBytes) {
    return invalid_argument("the serialized topology has %zu bytes; it may have at most %zu", bytes.size(),
                            kMaxSerializedBytes);
  }
  for (Reader reader(bytes); !reader.at_end();) {
    uint32_t tag = 0;
    DIST_TRY(reader.tag(&tag));
    switch (tag) {
      case tag_of(kMeshShape, kVarint): DIST_TRY(read_numbers(reader, false, &out->mesh_shape)); break;
      case tag_of(kMeshShape, kBytes): DIST_TRY(read_numbers(reader, true, &out->mesh_shape)); break;
      case tag_of(kNumTasks, kVarint): DIST_TRY(read_number(reader, &out->num_tasks)); break;
      case tag_of(kNumDevicesPerTask, kVarint):
        DIST_TRY(read_number(reader, &out->num_devices_per_task));
        break;
      case tag_of(kDeviceCoordinates, kVarint):
        DIST_TRY(read_numbers(reader, false, &out->device_coordinates));
        break;
      case tag_of(kDeviceCoordinates, kBytes):
        DIST_TRY(read_numbers(reader, true, &out->device_coordinates));
        break;
      case tag_of(kHardwareFeature, kBytes): DIST_TRY(check_message(reader)); break;
      default: DIST_TRY(reader.skip(tag, 0));
    }
  }
  return kOk;
}

}  // namespace dist

// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "core/collective/tiles-inl.hpp"
#include "core/collective/tiles.hpp"

namespace dist {
namespace {

// A member's part of the whole: a box of elements, or nothing.
struct Box {
  Box(const Partition& partition, int32_t logical_device) noexcept {
    // The partition is valid, so this could only fail for a logical device that does not exist.
    (void)partition.shard(logical_device, {nullptr, begin, size, &elements});
  }
  int64_t begin[DIST_MAX_NDIM] = {};
  int64_t size[DIST_MAX_NDIM] = {};
  int64_t elements = 0;
};

// Computes the intersection of two boxes and returns its number of elements.
int64_t meet(const Box& a, const Box& b, std::size_t ndim, int64_t* begin, int64_t* size) noexcept {
  if (a.elements == 0 || b.elements == 0) return 0;
  int64_t elements = 1;
  for (std::size_t i = 0; i < ndim; ++i) {
    begin[i] = std::max(a.begin[i], b.begin[i]);
    size[i] = std::max<int64_t>(0, std::min(a.begin[i] + a.size[i], b.begin[i] + b.size[i]) - begin[i]);
    elements *= size[i];
  }
  return elements;
}

// Whether a member copies from the shard that rank `p` has under `from`. If all members have the same
// elements, it uses its own.
bool takes_from(const Partition& from, int me, int p) noexcept {
  return from.kind != DIST_PARTITION_REPLICATE || p == me;
}

View part_of(const dist_tensor& tensor, const Box& box, const int64_t* begin, const int64_t* size) noexcept {
  int64_t made[DIST_MAX_NDIM];
  const int64_t* const strides = strides_of(tensor, made);
  View view;
  int64_t first = 0;
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    view.shape[i] = size[i];
    view.strides[i] = strides[i];
    first += (begin[i] - box.begin[i]) * strides[i];
  }
  view.data = static_cast<std::byte*>(tensor.data) + first * static_cast<int64_t>(dtype_size(tensor.dtype));
  return view;
}

// Copies the elements that the member needs from each peer's shard.
void collect(const Member& member, const Partition& from, const Partition& to, const dist_tensor* const* in,
             const dist_tensor& out) noexcept {
  const std::size_t ndim = to.shape.size();
  const Box wanted(to, member.me);
  for (int p = 0; p < member.group.size(); ++p) {
    if (!takes_from(from, member.me, p)) continue;
    const Box there(from, p);
    int64_t begin[DIST_MAX_NDIM];
    int64_t size[DIST_MAX_NDIM];
    if (meet(wanted, there, ndim, begin, size) == 0) continue;
    const View source = part_of(*in[p], there, begin, size);
    const View target = part_of(out, wanted, begin, size);
    if (!copy_view(out.dtype, out.ndim, source, target, [&] { return !member.group.aborted(); })) return;
  }
}

// Checks that a member's tensor is its shard under the partition. NULL is valid only for an empty shard.
Status check_shard(const Partition& partition, int me, const dist_tensor* tensor, const char* what,
                   Status (*check)(const dist_tensor&, const char*, TensorSize*)) noexcept {
  const Box box(partition, me);
  if (tensor == nullptr) {
    if (box.elements == 0) return kOk;
    return invalid_argument("`%s` is `NULL`, but this member has %lld elements of the tensor", what,
                            static_cast<long long>(box.elements));
  }
  TensorSize size;
  DIST_TRY(check(*tensor, what, &size));
  const bool nothing = box.elements == 0 && size.elements == 0;
  const bool alike = tensor->ndim == static_cast<int32_t>(partition.shape.size()) &&
                     (nothing || std::equal(box.size, box.size + tensor->ndim, tensor->shape));
  if (alike) return kOk;
  char is[160];
  char wanted[160];
  describe(*tensor, is, sizeof is);
  describe({nullptr, tensor->dtype, static_cast<int32_t>(partition.shape.size()), box.size, nullptr}, wanted,
           sizeof wanted);
  return invalid_argument("%s is %s, but the partition gives this member %s", what, is, wanted);
}

uint64_t mix_partition(uint64_t digest, const Partition& partition) noexcept {
  digest = mix(digest, static_cast<uint64_t>(partition.kind));
  digest = mix(digest, static_cast<uint64_t>(partition.logical_device));
  for (const int64_t size : partition.shape) digest = mix(digest, static_cast<uint64_t>(size));
  if (partition.kind != DIST_PARTITION_SPLIT) return digest;
  for (const int64_t parts : partition.dimensions) digest = mix(digest, static_cast<uint64_t>(parts));
  return digest;
}

// The dtype of a member's tensors, or -1 if it has no tensors. The dtype is therefore not part of the signature:
// dtypes are compared when all members have arrived.
int dtype_of(const Brought& brought, int rank) noexcept {
  const dist_tensor* const shard = brought.in[rank] != nullptr ? brought.in[rank] : brought.out[rank];
  return shard == nullptr ? -1 : shard->dtype;
}

bool same_dtypes(const Group& group, const Brought& brought, ErrorRecord* why) noexcept {
  int one = -1;
  bool alike = true;
  for (int p = 0; p < group.size(); ++p) {
    const int dtype = dtype_of(brought, p);
    if (one < 0) one = dtype;
    alike = alike && (dtype < 0 || dtype == one);
    const dist_tensor* const out = brought.out[p];
    if (out == nullptr || out->dtype == dtype) continue;
    why->culprit = group.name(p);
    copy_text(why->expected, dtype_name(static_cast<dist_dtype>(dtype)));
    copy_text(why->received, dtype_name(out->dtype));
    std::snprintf(why->message, sizeof why->message, "out of %s is %s, but its in is %s",
                  NameText(group, p).text, why->received, why->expected);
    return false;
  }
  if (alike) return true;
  const Dissent dissent = dissent_of(
      group.size(), [&](int p) { return dtype_of(brought, p) >= 0; },
      [&](int a, int b) { return dtype_of(brought, a) == dtype_of(brought, b); });
  why->culprit = group.name(dissent.received);
  copy_text(why->expected, dtype_name(static_cast<dist_dtype>(dtype_of(brought, dissent.expected))));
  copy_text(why->received, dtype_name(static_cast<dist_dtype>(dtype_of(brought, dissent.received))));
  std::snprintf(why->message, sizeof why->message, "the shard of %s is %s, but the shard of %s is %s",
                NameText(group, dissent.received).text, why->received, NameText(group, dissent.expected).text,
                why->expected);
  return false;
}

bool check_members(const Member& member, const Brought& brought, const dist_tensor* out,
                   ErrorRecord* why) noexcept {
  if (same_dtypes(member.group, brought, why))
    return out == nullptr || lies_apart(member, *out, brought, why);
  copy_text(why->hint, "all shards of a tensor must have the same dtype");
  return false;
}

// Returns OK if a tensor can be resharded from `from` to `to`.
Status check_reshard(const Partition& from, const Partition& to) noexcept {
  DIST_TRY(from.check());
  DIST_TRY(to.check());
  if (from.num_logical_devices != to.num_logical_devices ||
      !std::equal(from.shape.begin(), from.shape.end(), to.shape.begin(), to.shape.end())) {
    return invalid_argument(
        "from and to are partitions of different shapes or for different numbers of devices");
  }
  if (std::find(from.shape.begin(), from.shape.end(), kUnknownSize) == from.shape.end()) return kOk;
  return invalid_argument("the tensor's shape must be known for resharding");
}

Status check_and_meet(const Member& member, const Partition& from, const Partition& to, const dist_tensor* in,
                      const dist_tensor* out) noexcept {
  DIST_TRY(check_reshard(from, to));
  if (from.num_logical_devices != member.group.size()) {
    return invalid_argument("the partitions are for %d logical devices, but the group has %d members",
                            from.num_logical_devices, member.group.size());
  }
  DIST_TRY(check_shard(from, member.me, in, "in", check_tensor));
  DIST_TRY(check_shard(to, member.me, out, "out", check_output));
  const std::size_t bytes = out == nullptr ? 0 : elements_of(*out) * dtype_size(out->dtype);
  return meet_on_tiles(
      member, {in, out, bytes},
      [&](Signature& signature) {
        signature.collective = Collective::kReshard;
        state_shape(from.shape, signature);
        signature.digest = mix_partition(mix_partition(2, from), to);
      },
      [&](const Brought& brought, ErrorRecord* why) {
        if (!check_members(member, brought, out, why)) return false;
        if (bytes != 0) collect(member, from, to, brought.in, *out);
        return true;
      });
}

// Number of elements that a logical device receives from others.
int64_t elements_to_move(const Partition& from, const Partition& to, int32_t logical_device) noexcept {
  const Box wanted(to, logical_device);
  int64_t begin[DIST_MAX_NDIM];
  int64_t size[DIST_MAX_NDIM];
  return wanted.elements - meet(wanted, Box(from, logical_device), to.shape.size(), begin, size);
}

}  // namespace

Status bytes_to_move(const Partition& from, const Partition& to, dist_dtype dtype, int32_t logical_device,
                     std::size_t* out) noexcept {
  DIST_TRY(check_reshard(from, to));
  const auto size = static_cast<int64_t>(dtype_size(dtype));
  if (size == 0) return invalid_argument("`dist_reshard_bytes()`: %d is not a dtype", dtype);
  const int32_t n = from.num_logical_devices;
  if (logical_device < -1 || logical_device >= n) {
    return invalid_argument("`dist_reshard_bytes()`: there is no logical device %d. A replica has %d.",
                            logical_device, n);
  }
  int64_t bytes = 0;
  for (int32_t d = 0; d < n; ++d) {
    if (logical_device >= 0 && d != logical_device) continue;
    int64_t moved = 0;
    if (__builtin_mul_overflow(elements_to_move(from, to, d), size, &moved) ||
        __builtin_add_overflow(bytes, moved, &bytes)) {
      return invalid_argument("`dist_reshard_bytes()`: the number of bytes to move does not fit in 64 bits");
    }
  }
  *out = static_cast<std::size_t>(bytes);
  return kOk;
}

Status reshard(const Member& member, const Partition& from, const Partition& to, const dist_tensor* in,
               const dist_tensor* out) noexcept {
  DIST_TRY(member.check_alone("reshard"));
  return recorded(member, Collective::kReshard, [&] { return check_and_meet(member, from, to, in, out); });
}

}  // namespace dist

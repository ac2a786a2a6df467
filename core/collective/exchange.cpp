// SPDX-License-Identifier: Apache-2.0
#include "core/collective/exchange.hpp"

#include <algorithm>
#include <cstring>

#include "core/kernel/identity.hpp"

namespace dist {
namespace {

// Elements of a tensor in one step along `axis`, row-major.
std::size_t inner_of(const dist_tensor& tensor, int32_t axis) noexcept {
  std::size_t inner = 1;
  for (int32_t i = axis + 1; i < tensor.ndim; ++i) inner *= static_cast<std::size_t>(tensor.shape[i]);
  return inner;
}

bool is_dense(const dist_tensor& tensor) noexcept {
  if (tensor.strides == nullptr) return true;
  int64_t dense = 1;
  for (int32_t i = tensor.ndim - 1; i >= 0; --i) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != dense) return false;
    dense *= tensor.shape[i];
  }
  return true;
}

}  // namespace

// One region: where it comes from and where it goes.
struct Exchange::Task {
  std::size_t t;  // the tensor
  int part;
  dist_dtype in_dtype;
  dist_dtype out_dtype;
  // The region of a whole tensor that was cut along an axis consists of runs of `run` elements, one each
  // src_step or dst_step elements; of a tensor that was not, it is one run. It begins src_offset or
  // dst_offset steps of `inner` elements behind the tensor's first.
  std::size_t run;
  std::size_t src_step;
  std::size_t dst_step;
  std::size_t inner = 0;
  int64_t src_offset = 0;
  int64_t dst_offset = 0;
  // In a thread's Scratch.
  std::size_t num_src = 0;
  std::size_t num_dst = 0;
  const std::byte** src;
  std::byte** dst;
  const double* weights = nullptr;  // one a source; NULL: none
  // Only where some tensor has gaps: the region's shape.
  int32_t ndim;
  int64_t shape[DIST_MAX_NDIM];

  void add_source(const void* data) noexcept { src[num_src++] = static_cast<const std::byte*>(data); }
  void add_destination(void* data) noexcept { dst[num_dst++] = static_cast<std::byte*>(data); }
  // Elements from the tensor's first, row-major, of the region's element `at` of row `row`.
  std::size_t src_at(std::size_t row, std::size_t at) const noexcept {
    return static_cast<std::size_t>(src_offset) * inner + row * src_step + at;
  }
  std::size_t dst_at(std::size_t row, std::size_t at) const noexcept {
    return static_cast<std::size_t>(dst_offset) * inner + row * dst_step + at;
  }
};

namespace {

// Steps through a region of a tensor with gaps, in row-major order from element `first`.
class Walk {
 public:
  Walk(const int64_t* shape, int32_t ndim, const int64_t* strides, std::size_t first) noexcept
      : shape_(shape), strides_(strides), ndim_(ndim) {
    for (int32_t i = ndim - 1; i >= 0; --i) {
      const auto size = static_cast<std::size_t>(shape[i]);
      at_[i] = static_cast<int64_t>(first % size);
      offset_ += at_[i] * strides[i];
      first /= size;
    }
  }
  int64_t offset() const noexcept { return offset_; }
  void next() noexcept {
    for (int32_t i = ndim_ - 1; i >= 0; --i) {
      offset_ += strides_[i];
      if (++at_[i] < shape_[i]) return;
      offset_ -= at_[i] * strides_[i];
      at_[i] = 0;
    }
  }

 private:
  const int64_t* shape_;
  const int64_t* strides_;
  int32_t ndim_;
  int64_t offset_ = 0;
  int64_t at_[DIST_MAX_NDIM];
};

// Copies `count` elements between a region with gaps and a dense buffer.
template <std::size_t kSize>
void gather_elements(Walk walk, const std::byte* from, std::byte* to, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i, walk.next()) {
    std::memcpy(to + i * kSize, from + walk.offset() * static_cast<int64_t>(kSize), kSize);
  }
}
template <std::size_t kSize>
void scatter_elements(Walk walk, const std::byte* from, std::byte* to, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i, walk.next()) {
    std::memcpy(to + walk.offset() * static_cast<int64_t>(kSize), from + i * kSize, kSize);
  }
}

void pack(Walk walk, const std::byte* from, std::byte* to, std::size_t count, std::size_t size) noexcept {
  switch (size) {
    case 1: return gather_elements<1>(walk, from, to, count);
    case 2: return gather_elements<2>(walk, from, to, count);
    case 4: return gather_elements<4>(walk, from, to, count);
    default: return gather_elements<8>(walk, from, to, count);
  }
}

void unpack(Walk walk, const std::byte* from, std::byte* to, std::size_t count, std::size_t size) noexcept {
  switch (size) {
    case 1: return scatter_elements<1>(walk, from, to, count);
    case 2: return scatter_elements<2>(walk, from, to, count);
    case 4: return scatter_elements<4>(walk, from, to, count);
    default: return scatter_elements<8>(walk, from, to, count);
  }
}

}  // namespace

Exchange::Exchange(const Call& call, int size, const Offer* const* offers, std::size_t cache_bytes) noexcept
    : call_(call), offers_(offers), size_(size) {
  const auto members = static_cast<std::size_t>(size);
  switch (call.traits().tasks) {
    case Tasks::kOne: break;
    case Tasks::kMembers: parts_ = members; break;
    case Tasks::kPairs: parts_ = members * members; break;
  }
  tasks_ = call.n * parts_;
  // Whether members say how many contributions they bring, and weights, is the same for all.
  if (call.plain()) {
    sources_ = members;
  } else {
    for (std::size_t p = 0; p < members; ++p) {
      sources_ += offers[p]->contributions;
      weighted_ = weighted_ || offers[p]->weights != nullptr;
    }
  }
  for (std::size_t p = 0; p < members; ++p) strided_ = strided_ || offers[p]->strided;
  if (call.element_bytes != 0) {
    unit_bytes_ = unit_bytes_for(call.element_bytes);
    block_units_ = std::max<std::size_t>(1, kBlockUnits * kUnitBytes / unit_bytes_);
  }
  for (std::size_t k = 0; k < tasks_; ++k)
    units_ += units_of(task_elements(k) * element_bytes(k), unit_bytes_);
  // A fused step reduces into a piece of cache.
  stream_ = !call.in_place && call.collective != Collective::kReduceApply &&
            bytes() > stream_bytes(members, cache_bytes);
}

Exchange::Ranks Exchange::ranks(Ends ends, int member, int peer) const noexcept {
  switch (ends) {
    case Ends::kAll: return {0, size_};
    case Ends::kRoot: return {call_.root, call_.root + 1};
    case Ends::kMember: return {member, member + 1};
    case Ends::kPeer: return peer < 0 ? Ranks{0, 0} : Ranks{peer, peer + 1};
  }
  return {0, 0};
}

// Whose inputs a task reads.
Exchange::Ranks Exchange::sources(int part) const noexcept {
  const CollectiveTraits& traits = call_.traits();
  const int member = traits.tasks == Tasks::kPairs ? part / size_ : part;
  return ranks(traits.sources, member, traits.sources == Ends::kPeer ? offers_[part]->source : -1);
}

// Whose outputs it writes.
Exchange::Ranks Exchange::destinations(int part) const noexcept {
  const CollectiveTraits& traits = call_.traits();
  return ranks(traits.destinations, traits.tasks == Tasks::kPairs ? part % size_ : part, -1);
}

dist_dtype Exchange::dtype_of(std::size_t t) const noexcept {
  return call_.in != nullptr ? call_.in[t].dtype : call_.out[t].dtype;
}

std::size_t Exchange::element_bytes(std::size_t k) const noexcept {
  return dtype_size(dtype_of(tensor_of(k)));
}

int64_t Exchange::split(int p, int r, std::size_t t) const noexcept {
  const Offer& offer = *offers_[p];
  return offer.splits != nullptr ? offer.splits[r] : offer.in[t].shape[call_.axis_of(t)] / size_;
}

std::size_t Exchange::task_elements(std::size_t k) const noexcept {
  const std::size_t t = tensor_of(k);
  const int part = part_of_task(k);
  const CollectiveTraits& traits = call_.traits();
  if (traits.tasks == Tasks::kPairs) {
    const dist_tensor& in = offers_[part / size_]->in[t];
    std::size_t elements = static_cast<std::size_t>(split(part / size_, part % size_, t));
    for (int32_t i = 0; i < in.ndim; ++i) {
      if (i != call_.axis_of(t)) elements *= static_cast<std::size_t>(in.shape[i]);
    }
    return elements;
  }
  if (traits.cuts) return elements_of(offers_[part]->out[t]);
  if (traits.joins) return elements_of(offers_[part]->in[t]);
  if (traits.sources == Ends::kPeer) return elements_of(call_.out[t]);
  return elements_of(call_.in != nullptr ? call_.in[t] : call_.out[t]);
}

// The tensors that a task reads and writes, whole. One output that all members share is written once.
void Exchange::collect(Task& task) const noexcept {
  const std::size_t t = task.t;
  const int part = task.part;
  const bool plain = call_.n == 1 && !strided_;
  const Ranks from = sources(part);
  for (int p = from.begin; p < from.end; ++p) {
    const Offer& offer = *offers_[p];
    if (plain && (call_.plain() || offer.contributions == 1)) {
      task.add_source(offer.in_data);
    } else {
      for (std::size_t j = 0; j < offer.contributions; ++j) task.add_source(offer.in[j * call_.n + t].data);
    }
  }
  const Ranks to = destinations(part);
  for (int r = to.begin; r < to.end; ++r) {
    task.add_destination(plain ? offers_[r]->out_data : offers_[r]->out[t].data);
  }
  const bool shared = !call_.traits().differs && std::all_of(task.dst, task.dst + task.num_dst,
                                                             [&](auto* d) { return d == task.dst[0]; });
  if (shared) task.num_dst = 1;
}

// Calls use(s, tensor) for the tensors of which collect() gave the addresses.
template <class Use>
void Exchange::for_sources(const Task& task, Use&& use) const noexcept {
  const Ranks from = sources(task.part);
  std::size_t s = 0;
  for (int p = from.begin; p < from.end; ++p) {
    for (std::size_t j = 0; j < offers_[p]->contributions; ++j) {
      use(s++, offers_[p]->in[j * call_.n + task.t]);
    }
  }
}
template <class Use>
void Exchange::for_destinations(const Task& task, Use&& use) const noexcept {
  const int first = destinations(task.part).begin;
  for (std::size_t d = 0; d < task.num_dst; ++d) {
    use(d, offers_[first + static_cast<int>(d)]->out[task.t]);
  }
}

// Narrows one side of a task to the part of the whole that goes from its source to its destination: what is
// cut off the source's tensor, or the place in the destination's where it belongs.
void Exchange::narrow(Task& task, Side side) const noexcept {
  const std::size_t t = task.t;
  const int source = sources(task.part).begin;
  const int destination = destinations(task.part).begin;
  const bool cuts = side == Side::kSource;
  const dist_tensor& whole = cuts ? offers_[source]->in[t] : offers_[destination]->out[t];
  const int32_t axis = call_.axis_of(t);
  // Of the part that rank q gets of it, or gives to it.
  const auto size_of = [&](int q) {
    if (call_.traits().tasks == Tasks::kPairs) return cuts ? split(source, q, t) : split(q, destination, t);
    return cuts ? offers_[q]->out[t].shape[axis] : offers_[q]->in[t].shape[axis];
  };
  const int mine = cuts ? destination : source;
  int64_t before = 0;
  for (int q = 0; q < mine; ++q) before += size_of(q);
  task.inner = inner_of(whole, axis);
  (cuts ? task.src_offset : task.dst_offset) += before;
  (cuts ? task.src_step : task.dst_step) = static_cast<std::size_t>(whole.shape[axis]) * task.inner;
  task.run = task.inner * static_cast<std::size_t>(size_of(mine));
}

// The region's shape, for those who step through it.
void Exchange::shape_region(Task& task) const noexcept {
  const dist_tensor& like = call_.in != nullptr ? call_.in[task.t] : call_.out[task.t];
  task.ndim = like.ndim;
  std::copy_n(like.shape, like.ndim, task.shape);
  if (call_.cuts() || call_.joins()) {
    const int32_t axis = call_.axis_of(task.t);
    task.shape[axis] = static_cast<int64_t>(task.run / inner_of(like, axis));
  }
}

void Exchange::run_piece(std::size_t k, std::size_t first, std::size_t count) const noexcept {
  Scratch scratch;
  Task task;
  task.t = tensor_of(k);
  task.part = part_of_task(k);
  task.in_dtype = dtype_of(task.t);
  task.out_dtype = call_.out_dtype(task.in_dtype);
  task.run = task.src_step = task.dst_step = first + count;
  task.src = scratch.take<const std::byte*>(sources_);
  task.dst = scratch.take<std::byte*>(static_cast<std::size_t>(size_));
  task.weights = collect_weights(scratch);
  collect(task);
  if (call_.cuts()) narrow(task, Side::kSource);
  if (call_.joins()) narrow(task, Side::kDestination);
  // A side that is not cut has its runs one after another.
  if (call_.cuts() && !call_.joins()) task.dst_step = task.run;
  if (call_.joins() && !call_.cuts()) task.src_step = task.run;
  if (strided_) {
    shape_region(task);
    return call_.element_bytes != 0 ? run_rows(task, first, count) : run_strided(task, scratch, first, count);
  }
  // Bytes by which the pointers have been moved on.
  std::size_t src_moved = 0;
  std::size_t dst_moved = 0;
  while (count != 0) {
    const std::size_t row = first / task.run;
    const std::size_t at = first % task.run;
    const std::size_t n = std::min(count, task.run - at);
    const std::size_t from = task.src_at(row, at) * dtype_size(task.in_dtype);
    const std::size_t to = task.dst_at(row, at) * dtype_size(task.out_dtype);
    for (std::size_t s = 0; s < task.num_src; ++s) task.src[s] += from - src_moved;
    for (std::size_t d = 0; d < task.num_dst; ++d) task.dst[d] += to - dst_moved;
    src_moved = from;
    dst_moved = to;
    run_kernel(task, n);
    first += n;
    count -= n;
  }
}

// Where the region begins in a tensor with gaps.
std::byte* Exchange::begin_of(const Task& task, const dist_tensor& tensor, int64_t offset) const noexcept {
  auto* const data = static_cast<std::byte*>(tensor.data);
  if (offset == 0) return data;
  return data +
         offset * tensor.strides[call_.axis_of(task.t)] * static_cast<int64_t>(dtype_size(tensor.dtype));
}

// A region with gaps, in pieces that are packed, worked on and unpacked. In place is safe: an element is read
// by all that need it before it is written.
void Exchange::run_strided(const Task& task, Scratch& scratch, std::size_t first,
                           std::size_t count) const noexcept {
  const std::size_t in_size = dtype_size(task.in_dtype);
  const std::size_t out_size = dtype_size(task.out_dtype);
  const std::size_t each = std::max<std::size_t>(1, task.num_src * in_size + task.num_dst * out_size);
  // Buffers of one element hold it aligned, whatever their neighbours measure. Where not even one of each
  // tensor fits, elements are worked on where they lie, one by one.
  const std::size_t room = scratch.left();
  const bool packs = each <= room;
  const std::size_t most = packs ? room / each : 1;
  auto* const stage = scratch.take<std::byte>(room);
  while (count != 0) {
    const std::size_t row = first / task.run;
    const std::size_t at = first % task.run;
    const std::size_t n = std::min({count, task.run - at, most});
    std::byte* free = stage;
    // Where the kernel finds a tensor's elements, in `free` where they have to be packed.
    const auto aim = [&](const dist_tensor& tensor, int64_t offset, std::size_t dense, bool reads) {
      const std::size_t size = dtype_size(tensor.dtype);
      if (is_dense(tensor)) return static_cast<std::byte*>(tensor.data) + dense * size;
      std::byte* const begin = begin_of(task, tensor, offset);
      const Walk walk(task.shape, task.ndim, tensor.strides, first);
      if (!packs) return begin + walk.offset() * static_cast<int64_t>(size);
      std::byte* const packed = free;
      free += n * size;
      if (reads) pack(walk, begin, packed, n, size);
      return packed;
    };
    for_sources(task, [&](std::size_t s, const dist_tensor& tensor) {
      task.src[s] = aim(tensor, task.src_offset, task.src_at(row, at), true);
    });
    for_destinations(task, [&](std::size_t d, const dist_tensor& tensor) {
      task.dst[d] = aim(tensor, task.dst_offset, task.dst_at(row, at), false);
    });
    run_kernel(task, n);
    for_destinations(task, [&](std::size_t d, const dist_tensor& tensor) {
      if (!packs || d < unwritten() || is_dense(tensor)) return;
      std::byte* const begin = begin_of(task, tensor, task.dst_offset);
      unpack(Walk(task.shape, task.ndim, tensor.strides, first), task.dst[d], begin, n, out_size);
    });
    first += n;
    count -= n;
  }
}

// The same where elements of the host's operator must stay whole: they do in what lies side by side in all
// tensors, and may be too large to be packed.
void Exchange::run_rows(const Task& task, std::size_t first, std::size_t count) const noexcept {
  std::size_t row = task.run;
  const auto shorten = [&](std::size_t, const dist_tensor& tensor) {
    if (!is_dense(tensor)) row = std::min(row, contiguous_tail(task.shape, tensor.strides, task.ndim, 0));
  };
  for_sources(task, shorten);
  for_destinations(task, shorten);
  while (count != 0) {
    const std::size_t n = std::min(count, row - first % row);
    const auto aim = [&](const dist_tensor& tensor, int64_t offset, std::size_t dense) {
      const std::size_t size = dtype_size(tensor.dtype);
      if (is_dense(tensor)) return static_cast<std::byte*>(tensor.data) + dense * size;
      const Walk walk(task.shape, task.ndim, tensor.strides, first);
      return begin_of(task, tensor, offset) + walk.offset() * static_cast<int64_t>(size);
    };
    for_sources(task, [&](std::size_t s, const dist_tensor& tensor) {
      task.src[s] = aim(tensor, task.src_offset, task.src_at(first / task.run, first % task.run));
    });
    for_destinations(task, [&](std::size_t d, const dist_tensor& tensor) {
      task.dst[d] = aim(tensor, task.dst_offset, task.dst_at(first / task.run, first % task.run));
    });
    run_kernel(task, n);
    first += n;
    count -= n;
  }
}

void Exchange::run_kernel(const Task& task, std::size_t count) const noexcept {
  if (call_.collective == Collective::kScan) return run_scan(task, count);
  if (call_.op == 0) {
    const std::size_t bytes = count * dtype_size(task.in_dtype);
    for (std::size_t d = 0; d < task.num_dst; ++d) {
      if (task.num_src == 0) {
        std::memset(task.dst[d], 0, bytes);
      } else if (task.dst[d] != task.src[0]) {
        // They may overlap: a member whose buffers do says so, perhaps after a peer has begun.
        std::memmove(task.dst[d], task.src[0], bytes);
      }
    }
    return;
  }
  fold({task.in_dtype, task.src, task.num_src, task.weights, task.dst, task.num_dst, count});
}

// How many outputs stay as they are: an operator of the host has no identity to begin an exclusive scan with.
std::size_t Exchange::unwritten() const noexcept {
  const bool exclusive = call_.collective == Collective::kScan && call_.kind == DIST_SCAN_EXCLUSIVE;
  return exclusive && call_.op == DIST_REDUCE_USER ? 1 : 0;
}

// From the last member to the first, so that in place no input is overwritten before all have read it.
void Exchange::run_scan(const Task& task, std::size_t count) const noexcept {
  const std::size_t own = call_.kind == DIST_SCAN_INCLUSIVE ? 1 : 0;
  for (std::size_t r = task.num_dst; r-- > 0;) {
    if (r + own != 0) {
      fold({task.in_dtype, task.src, r + own, nullptr, task.dst + r, 1, count});
    } else if (unwritten() == 0) {
      fill_identity(task.in_dtype, call_.op, task.dst[r], count);
    }
  }
}

}  // namespace dist

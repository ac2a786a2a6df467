// SPDX-License-Identifier: Apache-2.0
#include "core/collective/exchange.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/on_stack.hpp"
#include "core/collective/exchange_job.hpp"
#include "core/collective/walk.hpp"

namespace dist {
namespace {

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

Exchange::Exchange(const Call& call, int size, const CallDescriptor* const* descriptors,
                   std::size_t cache_bytes, TaskList::Ranks local) noexcept
    : call_(call), descriptors_(descriptors), size_(size), tasks_(call, size, descriptors, local) {
  const auto members = static_cast<std::size_t>(size);
  // Either all members specify a number of contributions, or none does. The same holds for weights.
  if (call.plain()) {
    sources_ = members;
  } else {
    for (std::size_t p = 0; p < members; ++p) {
      sources_ += descriptors[p]->contributions;
      weighted_ = weighted_ || descriptors[p]->weights != nullptr;
    }
  }
  for (std::size_t p = 0; p < members; ++p) strided_ = strided_ || descriptors[p]->strided;
  if (call.element_bytes != 0)
    block_units_ = std::max<std::size_t>(1, kBlockUnits * kUnitBytes / tasks_.unit_bytes());
  // Large results that are not in place would evict everything else from the cache. stream_bytes() has an
  // upper limit because a virtual machine may report the whole cache of a host of which it has only a part:
  // on two CPUs of a Xeon that reports 260 MiB, 16 MiB take 2.2 ms with plain stores and 1.1 ms with stores
  // past the caches. Between 2 and 8 MiB, the time that stores past the caches save is lost again when the
  // members read the results. A fused step reduces into a small buffer that should stay in the cache.
  stream_ = !call.in_place && !call.traits().fused && bytes() > stream_bytes(members, cache_bytes);
  folds_dense_ = call.collective == Collective::kAllReduce && call.n > 1 && call.plain() && !strided_ &&
                 call.op != DIST_REDUCE_USER && call.numerics == DIST_NUMERICS_ORDERED &&
                 local.end - local.begin == size;
}

// Collects the addresses of the tensors that a task reads and writes. An output that all members share is
// written once.
void Exchange::collect(Job& job) const noexcept {
  const std::size_t t = job.t;
  const bool plain = call_.n == 1 && !strided_;
  for (int p = job.sources.begin; p < job.sources.end; ++p) {
    const CallDescriptor& descriptor = *descriptors_[p];
    if (plain && (call_.plain() || descriptor.contributions == 1)) {
      job.add_source(descriptor.in_data);
    } else {
      for (std::size_t j = 0; j < descriptor.contributions; ++j)
        job.add_source(descriptor.in[j * call_.n + t].data);
    }
  }
  for (int r = job.destinations.begin; r < job.destinations.end; ++r) {
    job.add_destination(plain ? descriptors_[r]->out_data : descriptors_[r]->out[t].data);
  }
  const bool shared = !call_.traits().prefixes &&
                      std::all_of(job.dst, job.dst + job.num_dst, [&](auto* d) { return d == job.dst[0]; });
  if (shared) job.num_dst = 1;
}

// Calls use(s, tensor) for each source tensor whose address collect() has stored.
template <class Use>
void Exchange::for_sources(const Job& job, Use&& use) const noexcept {
  std::size_t s = 0;
  for (int p = job.sources.begin; p < job.sources.end; ++p) {
    for (std::size_t j = 0; j < descriptors_[p]->contributions; ++j) {
      use(s++, descriptors_[p]->in[j * call_.n + job.t]);
    }
  }
}
template <class Use>
void Exchange::for_destinations(const Job& job, Use&& use) const noexcept {
  const int first = job.destinations.begin;
  for (std::size_t d = 0; d < job.num_dst; ++d) {
    use(d, descriptors_[first + static_cast<int>(d)]->out[job.t]);
  }
}

// Sets the region's shape, which is needed to step through it.
void Exchange::shape_region(Job& job) const noexcept {
  const dist_tensor& like = call_.in != nullptr ? call_.in[job.t] : call_.out[job.t];
  job.ndim = like.ndim;
  std::copy_n(like.shape, like.ndim, job.shape);
  if (call_.cuts() || call_.joins())
    job.shape[call_.axis_of(job.t)] = static_cast<int64_t>(job.region.run / tasks_.inner(job.t));
}

void Exchange::run_piece(const TaskList::Cursor& at, std::size_t first, std::size_t count) const noexcept {
  const std::size_t t = tasks_.tensor_of(at.task);
  const int member = tasks_.member_of(at.task);
  const CollectiveTraits& traits = call_.traits();
  if (traits.swaps()) return run_swap(at, first, count);
  const std::size_t end = first + count;
  run_region({t, tasks_.sources(member), tasks_.destinations(member),
              traits.cuts || traits.joins ? tasks_.region(at) : TaskList::Region{.run = end}},
             first, count);
}

std::size_t Exchange::bytes_each() const noexcept {
  const CollectiveTraits& traits = call_.traits();
  const bool one_to_one =
      traits.tasks == Tasks::kMembers && traits.sources != Ends::kAll && traits.destinations != Ends::kAll;
  return one_to_one || traits.swaps() ? bytes() / static_cast<std::size_t>(size_) : bytes();
}

// Whether the members' parts are contiguous in all outputs.
bool Exchange::joins_once() const noexcept {
  const CollectiveTraits& traits = call_.traits();
  const TaskList::Ranks local = tasks_.local();
  if (!traits.joins || traits.cuts || traits.rooted() || strided_ || local.end - local.begin != size_)
    return false;
  for (std::size_t t = 0; t < call_.n; ++t) {
    if (tasks_.inner(t) != tasks_.around(t)) return false;
  }
  return true;
}

bool Exchange::pulls() const noexcept {
  const CollectiveTraits& traits = call_.traits();
  if (bytes() > kPullBytes || traits.reduces || traits.destinations != Ends::kAll) return false;
  if (traits.joins ? !joins_once() : strided_ || traits.sources != Ends::kRoot) return false;
  for (std::size_t t = 0; t < call_.n; ++t) {
    if (size_ > 1 && out_of(0, t) == out_of(1, t) && out_of(0, t) != nullptr) return false;
  }
  return true;
}

// Does everything on this thread. If every member receives all parts, joins them once and copies the result.
void Exchange::run_all() const noexcept {
  TaskList::Cursor cursor;
  if (!joins_once()) return run({0, units()}, cursor, [] { return true; });
  pull(0, [] { return true; });
  for (std::size_t t = 0; t < call_.n; ++t) {
    const std::byte* const joined = out_of(0, t);
    const std::size_t bytes =
        static_cast<std::size_t>(tasks_.whole(0, t)) * tasks_.inner(t) * dtype_size(tasks_.dtype_of(t));
    for (int r = 1; r < size_ && bytes != 0; ++r) {
      if (out_of(r, t) != joined) std::memcpy(out_of(r, t), joined, bytes);
    }
  }
}

// Copies elements of rank r's output in an all_to_all whose parts are contiguous and whose tensors are dense.
void Exchange::run_swap_row(const TaskList::Cursor& at, std::size_t begin, std::size_t end) const noexcept {
  const std::size_t t = tasks_.tensor_of(at.task);
  const int r = tasks_.member_of(at.task);
  const std::size_t element = dtype_size(tasks_.dtype_of(t));
  const std::size_t step = tasks_.inner(t);
  std::byte* const out = out_of(r, t);
  // The size of the latest member that has equal parts. It is kept because a division takes longer than a
  // short copy.
  int64_t whole = -1;
  int64_t each = 0;
  std::size_t from = 0;
  for (int p = 0; p < size_ && from < end; ++p) {
    const int64_t* const offsets = descriptors_[p]->offsets;
    if (offsets == nullptr && tasks_.part(p, t) != whole) {
      whole = tasks_.part(p, t);
      each = whole / size_;
    }
    const int64_t first = offsets != nullptr ? offsets[r] : each * r;
    const int64_t count = offsets != nullptr ? offsets[r + 1] - first : each;
    const std::size_t to = from + static_cast<std::size_t>(count) * step;
    const std::size_t low = std::max(begin, from);
    const std::size_t high = std::min(end, to);
    if (low < high) {
      const std::size_t source = static_cast<std::size_t>(first) * step + (low - from);
      std::memmove(out + low * element, in_of(p, t) + source * element, (high - low) * element);
    }
    from = to;
  }
}

// Copies a piece of the output of rank r in an all_to_all. The piece may begin and end inside a row, so the
// elements of each source are copied in three steps: for the incomplete first row, for the complete rows, and
// for the incomplete last row.
void Exchange::run_swap(const TaskList::Cursor& at, std::size_t first, std::size_t count) const noexcept {
  const std::size_t t = tasks_.tensor_of(at.task);
  const int r = tasks_.member_of(at.task);
  const std::size_t step = tasks_.inner(t);
  if (!strided_ && step == tasks_.around(t)) return run_swap_row(at, first, first + count);
  const std::size_t row = static_cast<std::size_t>(tasks_.whole(r, t)) * step;
  const auto do_rows = [&](std::size_t begin_row, std::size_t rows, std::size_t begin, std::size_t end) {
    int64_t before = 0;
    for (int p = 0; p < size_; ++p) {
      const auto from = static_cast<std::size_t>(before) * step;
      if (from >= end) return;
      const TaskList::Region region = tasks_.region_from(at, p, before);
      before += tasks_.split(p, r, t);
      const std::size_t low = std::max(begin, from);
      const std::size_t high = std::min(end, from + region.run);
      if (low >= high) continue;
      run_region({t, {p, p + 1}, {r, r + 1}, region}, begin_row * region.run + (low - from),
                 (rows - 1) * region.run + (high - low));
    }
  };
  if (const std::size_t begin = first % row; begin != 0 || count < row) {
    const std::size_t n = std::min(count, row - begin);
    do_rows(first / row, 1, begin, begin + n);
    first += n;
    count -= n;
  }
  if (count >= row) do_rows(first / row, count / row, 0, row);
  if (const std::size_t rest = count % row; rest != 0) do_rows((first + count) / row, 1, 0, rest);
}

void Exchange::run_region(const Place& place, std::size_t first, std::size_t count) const noexcept {
  const std::size_t bytes =
      Scratch::bytes_for(fold_bytes() + Scratch::bytes_of<std::byte*>(static_cast<std::size_t>(size_)));
  Scratch scratch(DIST_ON_STACK(Scratch::Line, Scratch::lines(bytes)), bytes);
  const dist_dtype dtype = tasks_.dtype_of(place.t);
  Job job(place, dtype, call_.out_dtype(dtype));
  job.src = scratch.take<const std::byte*>(sources_);
  job.dst = scratch.take<std::byte*>(static_cast<std::size_t>(size_));
  job.weights = collect_weights(scratch);
  collect(job);
  if (strided_) {
    shape_region(job);
    return call_.element_bytes != 0 ? run_rows(job, first, count) : run_strided(job, scratch, first, count);
  }
  // Number of bytes by which the pointers have been advanced.
  std::size_t src_moved = 0;
  std::size_t dst_moved = 0;
  while (count != 0) {
    const std::size_t row = first / job.region.run;
    const std::size_t at = first % job.region.run;
    const std::size_t n = std::min(count, job.region.run - at);
    const std::size_t from = job.src_at(row, at) * dtype_size(job.in_dtype);
    const std::size_t to = job.dst_at(row, at) * dtype_size(job.out_dtype);
    for (std::size_t s = 0; s < job.num_src; ++s) job.src[s] += from - src_moved;
    for (std::size_t d = 0; d < job.num_dst; ++d) job.dst[d] += to - dst_moved;
    src_moved = from;
    dst_moved = to;
    run_kernel(job, n);
    first += n;
    count -= n;
  }
}

// The address at which the region begins in a strided tensor.
std::byte* Exchange::begin_of(const Job& job, const dist_tensor& tensor, int64_t offset) const noexcept {
  auto* const data = static_cast<std::byte*>(tensor.data);
  if (offset == 0) return data;
  return data +
         offset * tensor.strides[call_.axis_of(job.t)] * static_cast<int64_t>(dtype_size(tensor.dtype));
}

// Processes a strided region in pieces: each one is packed, reduced and unpacked. This works in place,
// because all inputs of an element are read before it is written.
void Exchange::run_strided(const Job& job, Scratch& scratch, std::size_t first,
                           std::size_t count) const noexcept {
  const std::size_t in_size = dtype_size(job.in_dtype);
  const std::size_t out_size = dtype_size(job.out_dtype);
  const std::size_t each = std::max<std::size_t>(1, job.num_src * in_size + job.num_dst * out_size);
  // Each buffer is aligned for its elements, whatever the sizes of its neighbours. If one element of each
  // tensor does not fit, elements are reduced one by one in place.
  const std::size_t room = scratch.left();
  const bool packs = each <= room;
  const std::size_t most = packs ? room / each : 1;
  auto* const stage = scratch.take<std::byte>(room);
  while (count != 0) {
    const std::size_t row = first / job.region.run;
    const std::size_t at = first % job.region.run;
    const std::size_t n = std::min({count, job.region.run - at, most});
    std::byte* free = stage;
    // The address of a tensor's elements for the kernel. If they must be packed, it points into `free`.
    const auto aim = [&](const dist_tensor& tensor, int64_t offset, std::size_t dense, bool reads) {
      const std::size_t size = dtype_size(tensor.dtype);
      if (is_dense(tensor)) return static_cast<std::byte*>(tensor.data) + dense * size;
      std::byte* const begin = begin_of(job, tensor, offset);
      const Walk walk(job.shape, job.ndim, tensor.strides, first);
      if (!packs) return begin + walk.offset() * static_cast<int64_t>(size);
      std::byte* const packed = free;
      free += n * size;
      if (reads) pack(walk, begin, packed, n, size);
      return packed;
    };
    for_sources(job, [&](std::size_t s, const dist_tensor& tensor) {
      job.src[s] = aim(tensor, job.region.src_offset, job.src_at(row, at), true);
    });
    for_destinations(job, [&](std::size_t d, const dist_tensor& tensor) {
      job.dst[d] = aim(tensor, job.region.dst_offset, job.dst_at(row, at), false);
    });
    run_kernel(job, n);
    for_destinations(job, [&](std::size_t d, const dist_tensor& tensor) {
      if (!packs || d < unwritten(job) || is_dense(tensor)) return;
      std::byte* const begin = begin_of(job, tensor, job.region.dst_offset);
      unpack(Walk(job.shape, job.ndim, tensor.strides, first), job.dst[d], begin, n, out_size);
    });
    first += n;
    count -= n;
  }
}

// Does the same for elements of a host operator, which must not be cut and may be too large to pack.
// Processes rows of elements that are contiguous in all tensors.
void Exchange::run_rows(const Job& job, std::size_t first, std::size_t count) const noexcept {
  std::size_t row = job.region.run;
  const auto shorten = [&](std::size_t, const dist_tensor& tensor) {
    if (!is_dense(tensor)) row = std::min(row, contiguous_tail(job.shape, tensor.strides, job.ndim, 0));
  };
  for_sources(job, shorten);
  for_destinations(job, shorten);
  while (count != 0) {
    const std::size_t n = std::min(count, row - first % row);
    const auto aim = [&](const dist_tensor& tensor, int64_t offset, std::size_t dense) {
      const std::size_t size = dtype_size(tensor.dtype);
      if (is_dense(tensor)) return static_cast<std::byte*>(tensor.data) + dense * size;
      const Walk walk(job.shape, job.ndim, tensor.strides, first);
      return begin_of(job, tensor, offset) + walk.offset() * static_cast<int64_t>(size);
    };
    for_sources(job, [&](std::size_t s, const dist_tensor& tensor) {
      job.src[s] =
          aim(tensor, job.region.src_offset, job.src_at(first / job.region.run, first % job.region.run));
    });
    for_destinations(job, [&](std::size_t d, const dist_tensor& tensor) {
      job.dst[d] =
          aim(tensor, job.region.dst_offset, job.dst_at(first / job.region.run, first % job.region.run));
    });
    run_kernel(job, n);
    first += n;
    count -= n;
  }
}

void Exchange::run_kernel(const Job& job, std::size_t count) const noexcept {
  if (call_.traits().prefixes) return run_scan(job, count);
  if (call_.op == 0) {
    const std::size_t bytes = count * dtype_size(job.in_dtype);
    for (std::size_t d = 0; d < job.num_dst; ++d) {
      if (job.num_src == 0) {
        std::memset(job.dst[d], 0, bytes);
      } else if (job.dst[d] != job.src[0]) {
        // memmove(), because the buffers may overlap: a peer may have started before this member detects the
        // overlap.
        std::memmove(job.dst[d], job.src[0], bytes);
      }
    }
    return;
  }
  fold({job.in_dtype, job.src, job.num_src, job.weights, job.dst, job.num_dst, count});
}

}  // namespace dist

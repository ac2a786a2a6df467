// SPDX-License-Identifier: Apache-2.0
// The loop of every SIMD kernel, compiled once for each target. It processes blocks of a few vectors, then
// single vectors, then a partial vector. The element class (elements-inl.hpp) defines the operation on lanes.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/base/prefetch.hpp"
#include "core/kernel/elements-inl.hpp"
#include "core/kernel/reduce.hpp"
#include "core/kernel/tree.hpp"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

#if defined(DIST_KERNEL_LOOP_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef DIST_KERNEL_LOOP_INL_HPP
#undef DIST_KERNEL_LOOP_INL_HPP
#else
#define DIST_KERNEL_LOOP_INL_HPP
#endif

// An array of vectors is kept in registers only if its loops are unrolled; at -O2 GCC must be told to.
#undef DIST_UNROLL
#if HWY_COMPILER_CLANG
#define DIST_UNROLL _Pragma("clang loop unroll(full)")
#else
#define DIST_UNROLL _Pragma("GCC unroll 4")
#endif

HWY_BEFORE_NAMESPACE();
namespace dist {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Pointers to lanes. If their number is fixed, they are copied: a store might change the caller's array, so
// that the compiler would load each pointer again after each store.
template <class Byte, class T, std::size_t kCount>
class Pointers {
 public:
  HWY_INLINE Pointers(Byte* const* from, std::size_t) {
    for (std::size_t i = 0; i < kCount; ++i) at_[i] = reinterpret_cast<T*>(from[i]);
  }
  static constexpr HWY_INLINE std::size_t size() { return kCount; }
  HWY_INLINE T* operator[](std::size_t i) const { return at_[i]; }

 private:
  std::array<T*, kCount> at_;
};

template <class Byte, class T>
class Pointers<Byte, T, 0> {
 public:
  HWY_INLINE Pointers(Byte* const* from, std::size_t size) : from_(from), size_(size) {}
  HWY_INLINE std::size_t size() const { return size_; }
  HWY_INLINE T* operator[](std::size_t i) const { return reinterpret_cast<T*>(from_[i]); }

 private:
  Byte* const* from_;
  std::size_t size_;
};

// Whether masked accesses do not touch the memory of the other lanes on this target.
template <class T>
inline constexpr bool kMasks = HWY_MEM_OPS_MIGHT_FAULT == 0 || (HWY_TARGET == HWY_AVX2 && sizeof(T) >= 4);

// Loads the first n lanes; the lanes above are zeros.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_part(D d, const T* from, std::size_t n) {
  if constexpr (kMasks<T>) {
    return hn::MaskedLoad(hn::FirstN(d, n), d, from);
  } else {
    HWY_ALIGN T lanes[hn::MaxLanes(d)] = {};
    std::memcpy(lanes, from, n * sizeof(T));
    return hn::Load(d, lanes);
  }
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_part(hn::Vec<D> value, D d, T* to, std::size_t n) {
  if constexpr (kMasks<T>) {
    hn::BlendedStore(value, hn::FirstN(d, n), d, to);
  } else {
    HWY_ALIGN T lanes[hn::MaxLanes(d)];
    hn::Store(value, d, lanes);
    std::memcpy(to, lanes, n * sizeof(T));
  }
}

inline constexpr std::size_t kLineBytes = 64;

// An element class whose contributions are folded by the tree of tree.hpp instead of from left to right.
template <class Element>
struct AsTree : Element {
  explicit HWY_INLINE AsTree(const ReduceArguments& args) : Element(args) {}
};
template <class Element>
inline constexpr bool kIsTree = false;
template <class Element>
inline constexpr bool kIsTree<AsTree<Element>> = true;

// kSrc sources into kDst destinations; 0: as many as the arguments say.
template <class Element, std::size_t kSrc, std::size_t kDst>
class Loop {
 public:
  using In = typename Element::In;
  using Out = typename Element::Out;
  static constexpr std::size_t kStep = hn::MaxLanes(Out());

  explicit HWY_INLINE Loop(const ReduceArguments& args)
      : element_(args), src_(args.src, args.num_src), dst_(args.dst, args.num_dst) {}

  // Processes kVectors whole vectors. These are so few that the sums stay in sixteen registers.
  template <std::size_t kVectors, bool kStream>
  HWY_INLINE void vectors(std::size_t at) const {
    Value sum[kVectors];
    fold<kVectors>(Whole{src_, at}, sum);
    hn::Vec<Out> result[kVectors];
    DIST_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) result[v] = element_.finish(sum[v]);
    for (std::size_t d = 0; d < dst_.size(); ++d) {
      auto* to = dst_[d] + at;
      DIST_UNROLL
      for (std::size_t v = 0; v < kVectors; ++v) {
        if constexpr (kStream)
          hn::Stream(result[v], Out(), to + v * kStep);
        else
          hn::StoreU(result[v], Out(), to + v * kStep);
      }
    }
  }

  // Requests the cache lines of some lanes: those of all destinations for writing and, with kReads, those of
  // all sources.
  template <bool kReads>
  HWY_INLINE void fetch(std::size_t at, std::size_t end) const {
    for (std::size_t i = at; i < end; i += kLineBytes / sizeof(hn::TFromD<Out>)) {
      for (std::size_t p = 0; kReads && p < src_.size(); ++p) hwy::Prefetch(src_[p] + i);
      for (std::size_t d = 0; d < dst_.size(); ++d) fetch_to_write(dst_[d] + i);
    }
  }

  // Processes n lanes, fewer than a vector has.
  HWY_INLINE void part(std::size_t at, std::size_t n) const {
    Value sum[1];
    fold<1>(Part{src_, at, n}, sum);
    const auto result = element_.finish(sum[0]);
    for (std::size_t d = 0; d < dst_.size(); ++d) store_part(result, Out(), dst_[d] + at, n);
  }

 private:
  using Value = typename Element::Value;
  using Sources = Pointers<const std::byte, const hn::TFromD<In>, kSrc>;

  // Load vector v of source p, whole or a part of it.
  struct Whole {
    const Sources& src;
    std::size_t at;
    HWY_INLINE Value operator()(std::size_t p, std::size_t v) const {
      return Element::load(src[p] + at + v * kStep);
    }
  };
  struct Part {
    const Sources& src;
    std::size_t at;
    std::size_t n;
    HWY_INLINE Value operator()(std::size_t p, std::size_t) const {
      return Element::widen(load_part(In(), src[p] + at, n));
    }
  };

  template <std::size_t kVectors, class Load>
  HWY_INLINE void fold(const Load& load, Value (&sum)[kVectors]) const {
    if constexpr (kIsTree<Element>) {
      fold_tree(load, sum);
    } else {
      DIST_UNROLL
      for (std::size_t v = 0; v < kVectors; ++v) sum[v] = load(0, v);
      for (std::size_t p = 1; p < src_.size(); ++p) {
        DIST_UNROLL
        for (std::size_t v = 0; v < kVectors; ++v) sum[v] = Element::apply(sum[v], load(p, v));
      }
    }
  }

  // Trees of eight contributions stay in registers. Subtotals that wait for their neighbours are on the
  // stack, like the digits of a binary counter.
  template <std::size_t kVectors, class Load>
  HWY_INLINE void fold_tree(const Load& load, Value (&sum)[kVectors]) const {
    Value waiting[kTreeSlots][kVectors];
    std::size_t depth = 0;
    const std::size_t eights = src_.size() / 8;
    for (std::size_t q = 0; q < eights; ++q) {
      DIST_UNROLL
      for (std::size_t v = 0; v < kVectors; ++v) sum[v] = block<8>(load, 8 * q, v);
      for (std::size_t left = q; left % 2 != 0; left /= 2) join(waiting[--depth], sum);
      if (8 * (q + 1) == src_.size()) return join_all(waiting, depth, sum);
      DIST_UNROLL
      for (std::size_t v = 0; v < kVectors; ++v) waiting[depth][v] = sum[v];
      ++depth;
    }
    DIST_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) sum[v] = last(load, 8 * eights, src_.size() % 8, v);
    join_all(waiting, depth, sum);
  }
  // T(p, n) for a power of two.
  template <std::size_t n, class Load>
  static HWY_INLINE Value block(const Load& load, std::size_t p, std::size_t v) {
    if constexpr (n == 1) {
      return load(p, v);
    } else {
      return Element::apply(block<n / 2>(load, p, v), block<n / 2>(load, p + n / 2, v));
    }
  }
  // T(p, n) for 1 to 7.
  template <class Load>
  static HWY_INLINE Value last(const Load& load, std::size_t p, std::size_t n, std::size_t v) {
    if (n < 4) return few(load, p, n, v);
    const Value four = block<4>(load, p, v);
    return n == 4 ? four : Element::apply(four, few(load, p + 4, n - 4, v));
  }
  template <class Load>
  static HWY_INLINE Value few(const Load& load, std::size_t p, std::size_t n, std::size_t v) {
    if (n == 1) return load(p, v);
    const Value two = block<2>(load, p, v);
    return n == 2 ? two : Element::apply(two, load(p + 2, v));
  }
  template <std::size_t kVectors>
  static HWY_INLINE void join(const Value (&left)[kVectors], Value (&sum)[kVectors]) {
    DIST_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) sum[v] = Element::apply(left[v], sum[v]);
  }
  template <std::size_t kVectors>
  static HWY_INLINE void join_all(const Value (&waiting)[kTreeSlots][kVectors], std::size_t depth,
                                  Value (&sum)[kVectors]) {
    while (depth > 0) join(waiting[--depth], sum);
  }

  Element element_;
  Sources src_;
  Pointers<std::byte, hn::TFromD<Out>, kDst> dst_;
};

// Number of vectors in a block: four, or two if each vector in memory is folded as two.
template <class Element>
inline constexpr std::size_t kBlock = sizeof(typename Element::Value) > sizeof(hn::Vec<typename Element::Out>)
                                          ? 2
                                          : 4;

// Whether lanes are folded in another type than the one in which they are stored.
template <class Element>
inline constexpr bool kConverts = !hwy::IsSame<typename Element::Value, hn::Vec<typename Element::Out>>();

// Processes whole blocks from lane `at` on. Returns the lane after them.
template <class Element, std::size_t kSrc, std::size_t kDst, bool kStream,
          std::size_t kVectors = kBlock<Element>>
std::size_t run_blocks(const ReduceArguments& args, std::size_t at, std::size_t end) {
  const Loop<Element, kSrc, kDst> loop(args);
  constexpr std::size_t kLanes = kVectors * loop.kStep;
  for (; at + kLanes <= end; at += kLanes) loop.template vectors<kVectors, kStream>(at);
  if constexpr (kStream) hwy::FlushStream();
  return at;
}

// Processes any number of lanes: those before and after whole blocks, and all lanes of a small message. It is
// compiled once for each Element.
template <class Element>
HWY_NOINLINE void run_lanes(const ReduceArguments& args, std::size_t at, std::size_t end) {
  const Loop<Element, 0, 0> loop(args);
  for (; at + loop.kStep <= end; at += loop.kStep) loop.template vectors<1, false>(at);
  if (at < end) loop.part(at, end - at);
}

// The number of lanes before the first cache line boundary, if it is the same in every destination and there
// are lines to stream; otherwise -1.
template <class T>
std::ptrdiff_t lanes_before_line(const ReduceArguments& args, std::size_t lanes) {
  constexpr std::size_t kLine = kLineBytes;
  const auto past = [&args](std::size_t d) { return reinterpret_cast<std::uintptr_t>(args.dst[d]) % kLine; };
  for (std::size_t d = 1; d < args.num_dst; ++d) {
    if (past(d) != past(0)) return -1;
  }
  const std::size_t bytes = (kLine - past(0)) % kLine;
  if (bytes % sizeof(T) != 0 || bytes + kLine > lanes * sizeof(T)) return -1;
  return static_cast<std::ptrdiff_t>(bytes / sizeof(T));
}

// Without kInBlocks, processes vector by vector. Streaming stores are limited by the memory's bandwidth, so
// for them the loop for any number of sources and destinations is as fast as the others.
template <class Element, std::size_t kSrc, std::size_t kDst, bool kInBlocks = true>
void run(const ReduceArguments& args) {
  const std::size_t lanes = args.count * Element::kLanes;
  std::ptrdiff_t head = -1;
  if (args.stream) head = lanes_before_line<hn::TFromD<typename Element::Out>>(args, lanes);
  std::size_t at = 0;
  if (head >= 0) {
    at = static_cast<std::size_t>(head);
    run_lanes<Element>(args, 0, at);
    at = run_blocks < Element, 0, 0, true, kInBlocks ? kBlock<Element> : 1 > (args, at, lanes);
  } else if constexpr (kInBlocks) {
    at = run_blocks<Element, kSrc, kDst, false>(args, at, lanes);
  }
  if (at < lanes) run_lanes<Element>(args, at, lanes);
}

// Reduces any number of sources to any number of destinations with a single loop, in blocks of vectors.
template <class Element>
void reduce(const ReduceArguments& args) noexcept {
  run<Element, 0, 0>(args);
}

// For products and other reductions that are rarely used. Block loops for all of them would add half to the
// compile time of the kernels. Without these, tensors of a few KiB take up to 2.7 times as long; those of 64
// KiB and more take the same time.
template <class Element>
void reduce_rare(const ReduceArguments& args) noexcept {
  run<Element, 0, 0, false>(args);
}

// For a member's part of a small all_reduce in place, most of whose cache lines come from other cores:
// completing each line before the next one makes the core request lines earlier. (4 KiB on two cores of a Zen
// 5, out of place and without run_fetching(): 0.32 us instead of 0.38 us. Larger parts take longer this way.)
template <class Element, std::size_t kSrc>
void run_between_cores(const ReduceArguments& args) {
  const std::size_t lanes = args.count * Element::kLanes;
  const std::size_t at = run_blocks<Element, kSrc, kSrc, false, 1>(args, 0, lanes);
  if (at < lanes) run_lanes<Element>(args, at, lanes);
}
constexpr std::size_t kMostBetweenCores = 4096;  // bytes of a destination

// For a member's part of an all_reduce with outputs in other cores' caches. A core requests the line of a
// store only if few stores before it are waiting, and the line of a load only if few instructions before it
// are waiting. So this loop requests lines before it needs them, a few at a time. (64 KiB out of place on two
// CPUs of a Xeon: 5.2 us instead of 8.2 us.)
template <class Element, std::size_t kSrc, std::size_t kDst, bool kReads>
void run_fetching(const ReduceArguments& args) {
  const Loop<Element, kSrc, kDst> loop(args);
  const std::size_t lanes = args.count * Element::kLanes;
  constexpr std::size_t kLinesAhead = 32;  // of all destinations together
  constexpr std::size_t kAhead = kLinesAhead / kDst * kLineBytes / sizeof(hn::TFromD<typename Element::Out>);
  static_assert(kAhead % loop.kStep == 0);
  std::size_t fetched = std::min(kAhead, lanes);
  loop.template fetch<kReads>(0, fetched);
  std::size_t at = 0;
  while (at + loop.kStep <= lanes) {
    const std::size_t next = std::min(fetched + kAhead, lanes);
    loop.template fetch<kReads>(fetched, next);
    for (; at + loop.kStep <= fetched; at += loop.kStep) loop.template vectors<1, false>(at);
    fetched = next;
  }
  if (at < lanes) loop.part(at, lanes - at);
}

// Like reduce(), with separate loops for usual numbers of sources. For the dtypes and operators of training.
template <class Element, std::size_t kSrc>
void run_sources(const ReduceArguments& args) {
  const std::size_t bytes = args.count * Element::kLanes * sizeof(hn::TFromD<typename Element::Out>);
  if (args.num_dst == 1) {
    // A smaller output was probably read last by its own thread. A larger one may have been read by a peer
    // since.
    constexpr std::size_t kMostOwn = 1024;
    if (args.stream || bytes <= kMostOwn) return run<Element, kSrc, 1>(args);
    return run_fetching<Element, kSrc, 1, false>(args);
  }
  if (args.num_dst != kSrc || args.stream) return run<Element, 0, 0>(args);
  const bool in_place = args.dst[0] == args.src[0];
  if constexpr (kConverts<Element>) {
    in_place ? run_fetching<Element, kSrc, kSrc, false>(args) : run_fetching<Element, kSrc, kSrc, true>(args);
  } else {
    // In place, the loads request the lines of the destinations early enough.
    if (!in_place) return run_fetching<Element, kSrc, kSrc, false>(args);
    bytes <= kMostBetweenCores ? run_between_cores<Element, kSrc>(args) : run<Element, kSrc, kSrc>(args);
  }
}

template <class Element>
void reduce_fast(const ReduceArguments& args) noexcept {
  switch (args.num_src) {
    case 2: return run_sources<Element, 2>(args);
    case 3: return run_sources<Element, 3>(args);
    case 4: return run_sources<Element, 4>(args);
    case 8: return run_sources<Element, 8>(args);
    default: return run<Element, 0, 0>(args);
  }
}

template <class Element>
void reduce_tree(const ReduceArguments& args) noexcept {
  using Tree = AsTree<Element>;
  if (args.num_dst != 1) return run<Tree, 0, 0>(args);
  switch (args.num_src) {
    case 4: return run<Tree, 4, 1>(args);
    case 8: return run<Tree, 8, 1>(args);
    default: return run<Tree, 0, 0>(args);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace dist
HWY_AFTER_NAMESPACE();

#endif  // DIST_KERNEL_LOOP_INL_HPP

// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "core/collective/tiles-inl.hpp"
#include "core/collective/tiles.hpp"

namespace dist {
namespace {

// Larger sizes and widths could overflow when they are added.
constexpr int64_t kMostWidth = int64_t{1} << 60;

// The members' tiles as a grid. Each member specifies the size of its own tile, so the start of a tile is the
// sum of the sizes before it.
class Grid {
 public:
  Grid(const Halo& halo, const dist_tensor* const* tiles, int size) noexcept
      : halo_(halo), tiles_(tiles), size_(size) {}

  int64_t step(std::size_t dimension) const noexcept {
    int64_t step = 1;
    for (std::size_t i = dimension + 1; i < halo_.parts.size(); ++i) step *= halo_.parts[i];
    return step;
  }
  int64_t index(int rank, std::size_t dimension) const noexcept {
    return rank / step(dimension) % halo_.parts[dimension];
  }
  // The size of all tiles with this index in this dimension.
  int64_t size_at(std::size_t dimension, int64_t index) const noexcept {
    return tiles_[index * step(dimension)]->shape[dimension];
  }
  int64_t begin_at(std::size_t dimension, int64_t index) const noexcept {
    int64_t begin = 0;
    for (int64_t i = 0; i < index; ++i) begin += size_at(dimension, i);
    return begin;
  }
  int64_t whole(std::size_t dimension) const noexcept { return begin_at(dimension, halo_.parts[dimension]); }

  // The members that disagree, if tiles in a row have different sizes.
  Dissent dissent() const noexcept {
    for (int p = 0; p < size_; ++p) {
      for (std::size_t i = 0; i < halo_.parts.size(); ++i) {
        if (tiles_[p]->shape[i] == size_at(i, index(p, i))) continue;
        return dissent_of(
            size_, [&](int r) { return index(r, i) == index(p, i); },
            [&](int a, int b) { return tiles_[a]->shape[i] == tiles_[b]->shape[i]; });
      }
    }
    return {};
  }

 private:
  const Halo& halo_;
  const dist_tensor* const* const tiles_;
  const int size_;
};

// The range [begin, end) of the whole that a member receives in one dimension. It may extend beyond the
// edges.
struct Reach {
  int64_t begin;
  int64_t end;
};

Reach reach_of(const Grid& grid, const Halo& halo, int me, std::size_t i) noexcept {
  const int64_t index = grid.index(me, i);
  const int64_t begin = grid.begin_at(i, index);
  const Reach reach{begin - halo.low[i], begin + grid.size_at(i, index) + halo.high[i]};
  if (halo.edges[i] != DIST_EDGE_NONE) return reach;
  return {std::max<int64_t>(reach.begin, 0), std::min(reach.end, grid.whole(i))};
}

// A run of elements of the result that come from one tile in one direction, or are zeros.
struct Run {
  int64_t count;
  int64_t tile;    // index in this dimension; -1: zeros
  int64_t offset;  // of the first element, in the tile
  int64_t step;    // 1, 0 or -1
};

// The run that begins at position `at` of the whole, which may be beyond its edges, and ends before `end`.
Run run_at(const Grid& grid, const Halo& halo, std::size_t i, int64_t at, int64_t end) noexcept {
  const int64_t n = grid.whole(i);
  int64_t source = at;
  int64_t step = 1;
  int64_t most = end - at;
  if (at < 0 || at >= n) {
    const int64_t period = 2 * (n - 1);
    switch (n == 0 ? DIST_EDGE_ZERO : halo.edges[i]) {
      case DIST_EDGE_WRAP: source = (at % n + n) % n; break;
      case DIST_EDGE_CLAMP:
        source = at < 0 ? 0 : n - 1;
        step = 0;
        if (at < 0) most = std::min(most, -at);
        break;
      case DIST_EDGE_REFLECT:
        source = period == 0 ? 0 : (at % period + period) % period;
        if (source >= n) {
          source = period - source;
          step = -1;
        }
        if (period == 0) step = 0;
        if (at < 0) most = std::min(most, -at);
        break;
      default: return {at < 0 ? std::min(most, -at) : most, -1, 0, 0};
    }
  }
  int64_t tile = 0;
  int64_t begin = 0;
  while (source >= begin + grid.size_at(i, tile)) begin += grid.size_at(i, tile++);
  const int64_t offset = source - begin;
  const int64_t left = step > 0 ? grid.size_at(i, tile) - offset : step < 0 ? offset + 1 : most;
  return {std::min(most, left), tile, offset, step};
}

// Iterates over the runs of all dimensions and copies for each combination.
class Filler {
 public:
  Filler(const Member& member, const Grid& grid, const Halo& halo, const dist_tensor* const* tiles,
         const dist_tensor& out) noexcept
      : member_(member), grid_(grid), halo_(halo), tiles_(tiles), out_(out) {
    out_strides_ = strides_of(out, made_);
  }

  bool fill() noexcept {
    to_.data = static_cast<std::byte*>(out_.data);
    return elements_of(out_) == 0 || fill_from(0);
  }

 private:
  bool fill_from(std::size_t i) noexcept {
    if (i == halo_.parts.size()) return copy();
    const Reach reach = reach_of(grid_, halo_, member_.me, i);
    std::byte* const data = to_.data;
    const auto size = static_cast<int64_t>(dtype_size(out_.dtype));
    for (int64_t at = reach.begin; at < reach.end; at += runs_[i].count) {
      runs_[i] = run_at(grid_, halo_, i, at, reach.end);
      to_.data = data + (at - reach.begin) * out_strides_[i] * size;
      if (!fill_from(i + 1)) return false;
    }
    to_.data = data;
    return true;
  }

  bool copy() noexcept {
    static std::byte zero[16];  // of any dtype; only read
    View from;
    from.data = zero;
    int64_t rank = 0;
    bool zeros = false;
    for (std::size_t i = 0; i < halo_.parts.size(); ++i) {
      from.shape[i] = runs_[i].count;
      to_.strides[i] = out_strides_[i];
      zeros = zeros || runs_[i].tile < 0;
      rank += std::max<int64_t>(0, runs_[i].tile) * grid_.step(i);
    }
    const dist_tensor& tile = *tiles_[rank];
    int64_t made[DIST_MAX_NDIM] = {};
    const int64_t* const strides = zeros ? made : strides_of(tile, made);
    int64_t first = 0;
    for (std::size_t i = 0; i < halo_.parts.size(); ++i) {
      from.strides[i] = strides[i] * runs_[i].step;
      first += strides[i] * runs_[i].offset;
    }
    if (!zeros)
      from.data = static_cast<std::byte*>(tile.data) + first * static_cast<int64_t>(dtype_size(tile.dtype));
    return copy_view(out_.dtype, out_.ndim, from, to_, [&] { return !member_.group.aborted(); });
  }

  const Member& member_;
  const Grid& grid_;
  const Halo& halo_;
  const dist_tensor* const* const tiles_;
  const dist_tensor& out_;
  int64_t made_[DIST_MAX_NDIM];
  const int64_t* out_strides_;
  Run runs_[DIST_MAX_NDIM];
  View to_;
};

Status check_halo(const Halo& halo, int32_t ndim, int size) noexcept {
  if (ndim == 0) return invalid_argument("in is a scalar, but a halo needs at least one dimension");
  if (halo.parts.size() != static_cast<std::size_t>(ndim)) {
    return invalid_argument("the halo has %zu dimensions, but in has %d", halo.parts.size(), ndim);
  }
  int64_t product = 1;
  for (std::size_t i = 0; i < halo.parts.size(); ++i) {
    if (halo.parts[i] < 1 || halo.parts[i] > size)
      return invalid_argument("`parts[%zu]` is %lld, but must be 1 to %d", i,
                              static_cast<long long>(halo.parts[i]), size);
    product = std::min<int64_t>(product * halo.parts[i], int64_t{size} + 1);
    if (halo.low[i] < 0 || halo.high[i] < 0 || halo.low[i] > kMostWidth || halo.high[i] > kMostWidth)
      return invalid_argument("`low[%zu]` and `high[%zu]` are %lld and %lld, but widths must be at least 0",
                              i, i, static_cast<long long>(halo.low[i]),
                              static_cast<long long>(halo.high[i]));
    if (halo.edges[i] < DIST_EDGE_ZERO || halo.edges[i] > DIST_EDGE_NONE)
      return invalid_argument("`edges[%zu]` is `%d`; use a `DIST_EDGE_...`", i, halo.edges[i]);
  }
  if (product == size) return kOk;
  return invalid_argument("the product of parts must be %d, the number of members of the group", size);
}

bool same_sizes(const Member& member, const Grid& grid, const Halo& halo, const dist_tensor& out,
                ErrorRecord* why) noexcept {
  for (std::size_t i = 0; i < halo.parts.size(); ++i) {
    const Reach reach = reach_of(grid, halo, member.me, i);
    const auto wanted = static_cast<long long>(std::max<int64_t>(0, reach.end - reach.begin));
    const auto given = static_cast<long long>(out.shape[i]);
    if (given == wanted) continue;
    why->culprit = member.group.name(member.me);
    std::snprintf(why->message, sizeof why->message,
                  "out of %s has %lld elements in dimension %zu, but its tile and halo have %lld",
                  NameText(member.group, member.me).text, given, i, wanted);
    std::snprintf(why->expected, sizeof why->expected, "%lld elements in dimension %zu", wanted, i);
    std::snprintf(why->received, sizeof why->received, "%lld elements in dimension %zu", given, i);
    copy_text(
        why->hint,
        "out must have the tile's size plus both widths; with `DIST_EDGE_NONE` it ends at the edge of the whole"_m);
    return false;
  }
  return true;
}

bool check_members(const Member& member, const Grid& grid, const Halo& halo, const Brought& brought,
                   const dist_tensor& out, ErrorRecord* why) noexcept {
  if (const Dissent dissent = grid.dissent(); dissent.received >= 0) {
    why->culprit = member.group.name(dissent.received);
    describe(*brought.in[dissent.expected], why->expected, sizeof why->expected);
    describe(*brought.in[dissent.received], why->received, sizeof why->received);
    std::snprintf(why->message, sizeof why->message,
                  "the tile of %s, %s, does not fit the tiles in line with it",
                  NameText(member.group, dissent.received).text, why->received);
    copy_text(why->hint, "tiles at the same position along a dimension must have the same size there");
    return false;
  }
  return same_sizes(member, grid, halo, out, why) && lies_apart(member, out, brought, why);
}

void state(const Halo& halo, const dist_tensor& in, Signature& signature) noexcept {
  signature.collective = Collective::kHaloExchange;
  signature.dtype = in.dtype;
  state_shape(halo.parts, signature);
  uint64_t digest = mix(1, static_cast<uint64_t>(in.dtype));
  for (std::size_t i = 0; i < halo.parts.size(); ++i) {
    digest = mix(digest, static_cast<uint64_t>(halo.parts[i]));
    digest = mix(digest, static_cast<uint64_t>(halo.low[i]));
    digest = mix(digest, static_cast<uint64_t>(halo.high[i]));
    digest = mix(digest, static_cast<uint64_t>(halo.edges[i]));
  }
  signature.digest = digest;
}

Status check_and_meet(const Member& member, const dist_tensor& in, const Halo& halo,
                      const dist_tensor& out) noexcept {
  TensorSize in_size;
  TensorSize out_size;
  DIST_TRY(check_tensor(in, "in", &in_size));
  DIST_TRY(check_output(out, "out", &out_size));
  DIST_TRY(check_halo(halo, in.ndim, member.group.size()));
  if (out.dtype != in.dtype || out.ndim != in.ndim) {
    return invalid_argument(
        "`out` is %s with %d dimensions, but `in` is %s with %d. Both must have the same dtype and number of "
        "dimensions.",
        dtype_name(out.dtype), out.ndim, dtype_name(in.dtype), in.ndim);
  }
  return meet_on_tiles(
      member, {&in, &out, out_size.bytes}, [&](Signature& signature) { state(halo, in, signature); },
      [&](const Brought& brought, ErrorRecord* why) {
        const Grid grid(halo, brought.in, member.group.size());
        if (!check_members(member, grid, halo, brought, out, why)) return false;
        Filler(member, grid, halo, brought.in, out).fill();
        return true;
      });
}

}  // namespace

Status halo_exchange(const Member& member, const dist_tensor& in, const Halo& halo,
                     const dist_tensor& out) noexcept {
  DIST_TRY(member.check_alone("halo_exchange"));
  return recorded(member, Collective::kHaloExchange, [&] { return check_and_meet(member, in, halo, out); });
}

}  // namespace dist

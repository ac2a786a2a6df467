// SPDX-License-Identifier: Apache-2.0
// Exchange::refuses(): the checks that need the tensors of all members.
#include <cstdarg>
#include <cstdio>
#include <limits>

#include "core/collective/exchange.hpp"
#include "core/collective/extent.hpp"

namespace dist {
namespace {

// The fields of a report besides its message.
struct Fields {
  MemberName culprit;
  const char* expected;
  const char* received;
  const char* hint;
};

[[gnu::format(printf, 3, 4)]] bool refuse(ErrorRecord* why, const Fields& fields, const char* format,
                                          ...) noexcept {
  if (why == nullptr) return true;
  why->code = DIST_INVALID_ARGUMENT;
  why->culprit = fields.culprit;
  copy_text(why->expected, fields.expected);
  copy_text(why->received, fields.received);
  copy_text(why->hint, fields.hint);
  va_list arguments;
  va_start(arguments, format);
  (void)vwrite_marked(why->message, sizeof why->message, format, arguments);
  va_end(arguments);
  return true;
}

// Saturating addition: empty tensors may have any size.
int64_t sum(int64_t a, int64_t b) noexcept {
  return a > std::numeric_limits<int64_t>::max() - b ? std::numeric_limits<int64_t>::max() : a + b;
}

}  // namespace

void overlap_report(const MemberNames& group, int rank, int peer, std::size_t t, bool shares,
                    ErrorRecord* out_why) noexcept {
  const char* const word = group.naming().word();
  refuse(out_why,
         {group.name(rank), "memory of its own for every tensor", "buffers that overlap",
          "give each of them its own buffers"},
         "%ss %d and %d passed overlapping buffers for tensor %zu: every %s needs memory of its own%s", word,
         group.name(rank < peer ? rank : peer).number(), group.name(rank < peer ? peer : rank).number(), t,
         word, shares ? ", or all of them the same out" : "");
}

bool Exchange::refuses(const MemberNames& group, int member, ErrorRecord* out_why) const noexcept {
  if (differs_for_all(group, out_why)) return true;
  if (call_.traits().swaps() && swaps_differ(group, member, out_why)) return true;
  return !surely_apart(member) && overlaps(group, member, out_why);
}

// Checks that have the same result for every member.
bool Exchange::differs_for_all(const MemberNames& group, ErrorRecord* out_why) const noexcept {
  const bool tree = call_.numerics == DIST_NUMERICS_TREE;
  const std::size_t limit = std::min(most_contributions(size_), tree ? kMostTreeSources : SIZE_MAX);
  if (sources_ > limit) {
    char most[48];
    char given[48];
    std::snprintf(most, sizeof most, "at most %zu contributions", limit);
    std::snprintf(given, sizeof given, "%zu contributions", sources_);
    return refuse(out_why, {{}, most, given, "add up some of them before"},
                  "there are %zu contributions to one sum, but at most %zu are allowed", sources_, limit);
  }
  if (tree && call_.element_bytes > most_tree_element(sources_)) {
    char most[48];
    char given[32];
    std::snprintf(most, sizeof most, "elements of at most %zu bytes", most_tree_element(sources_));
    std::snprintf(given, sizeof given, "%zu bytes", call_.element_bytes);
    return refuse(out_why, {{}, most, given, "use ORDERED, or smaller elements"},
                  "`reduce_element_bytes` is %zu, but numerics TREE of %zu contributions takes at most %zu",
                  call_.element_bytes, sources_, most_tree_element(sources_));
  }
  if (call_.traits().pairs()) return pairs_differ(group, out_why);
  return (call_.joins() || call_.cuts()) && !call_.traits().swaps() && sizes_differ(group, out_why);
}

bool Exchange::pairs_differ(const MemberNames& group, ErrorRecord* out_why) const noexcept {
  const char* const word = group.naming().word();
  const auto fields = [&](int r) {
    return Fields{group.name(r), "a destination and a source that name each other",
                  "if destination[p] is r, source[r] must be p",
                  "destination[p] is r exactly where source[r] is p"};
  };
  for (int r = 0; r < size_; ++r) {
    const int to = descriptors_[r]->destination;
    const int from = descriptors_[r]->source;
    if (to >= 0 && descriptors_[to]->source != r) {
      return refuse(out_why, fields(r), "%s %d sends its tensors to rank %d (%s %d), whose source is %d",
                    word, group.name(r).number(), to, word, group.name(to).number(),
                    descriptors_[to]->source);
    }
    if (from >= 0 && descriptors_[from]->destination != r) {
      return refuse(
          out_why, fields(r), "%s %d expects the tensors of rank %d (%s %d), whose destination is %d", word,
          group.name(r).number(), from, word, group.name(from).number(), descriptors_[from]->destination);
    }
  }
  return false;
}

// Whether the sizes of the parts along the axis do not add up for some member that has a whole tensor.
bool Exchange::sizes_differ(const MemberNames& group, ErrorRecord* out_why) const noexcept {
  for (std::size_t t = 0; t < call_.n; ++t) {
    int64_t parts = 0;
    for (int p = 0; p < size_; ++p) parts = sum(parts, tasks_.part(p, t));
    for (int r = 0; r < size_; ++r) {
      const bool has_whole = call_.joins() ? call_.gets(r) : call_.gives(r);
      if (has_whole && size_differs(group, t, r, parts, out_why)) return true;
    }
  }
  return false;
}

// Does the same for an all_to_all, in which every member has a whole made of different parts. Each member
// checks only its own whole. A member whose parts do not add up then checks all members, so that the report
// does not depend on which member writes it.
bool Exchange::swaps_differ(const MemberNames& group, int member, ErrorRecord* out_why) const noexcept {
  for (std::size_t t = 0; t < call_.n; ++t) {
    if (swapped_size(member, t) == tasks_.whole(member, t)) continue;
    for (int r = 0; r < size_; ++r) {
      if (size_differs(group, t, r, swapped_size(r, t), out_why)) return true;
    }
  }
  return false;
}

int64_t Exchange::swapped_size(int rank, std::size_t t) const noexcept {
  int64_t parts = 0;
  for (int p = 0; p < size_; ++p) parts = sum(parts, tasks_.split(p, rank, t));
  return parts;
}

bool Exchange::size_differs(const MemberNames& group, std::size_t t, int rank, int64_t parts,
                            ErrorRecord* out_why) const noexcept {
  const int64_t whole = tasks_.whole(rank, t);
  if (whole == parts) return false;
  char wanted[64];
  char given[64];
  std::snprintf(wanted, sizeof wanted, "%lld elements along the axis", static_cast<long long>(parts));
  std::snprintf(given, sizeof given, "%lld elements along the axis", static_cast<long long>(whole));
  return refuse(out_why,
                {group.name(rank), wanted, given,
                 "the sizes of the parts along the axis must add up to the size of the whole"},
                "tensor %zu of %s %d has %lld elements along the axis, but its parts have %lld in total", t,
                group.naming().word(), group.name(rank).number(), static_cast<long long>(whole),
                static_cast<long long>(parts));
}

// Whether a member's own part lies inside the whole tensor, but not at its own place, that is behind `before`
// elements of lower ranks.
bool Exchange::misplaced(int rank, std::size_t t, int64_t before) const noexcept {
  const dist_tensor& in = descriptors_[rank]->in[t];
  const dist_tensor& out = descriptors_[rank]->out[t];
  if (!Extent(in, strided_).meets(Extent(out, strided_))) return false;
  const int32_t axis = call_.axis_of(t);
  // If a whole is cut along an inner dimension, a dense tensor inside it can be a part only if it is all of
  // the whole.
  for (int32_t i = 0; i < axis; ++i) {
    if (in.shape[i] != 1 && in.shape[axis] != out.shape[axis]) return true;
  }
  const auto at = static_cast<std::size_t>(before) * tasks_.inner(t) * dtype_size(in.dtype);
  const auto* whole = static_cast<const std::byte*>(call_.joins() ? out.data : in.data);
  return whole + at != (call_.joins() ? in.data : out.data);
}

// The buffers of a member that brings one dense tensor, from its slot.
Exchange::Buffers Exchange::buffers_of(int rank) const noexcept {
  const CallDescriptor& descriptor = *descriptors_[rank];
  const dist_dtype dtype = tasks_.dtype_of(0);
  std::size_t in_elements = tasks_.elements(0);
  std::size_t out_elements = in_elements;
  if (call_.joins() || call_.cuts()) {
    const std::size_t around = tasks_.around(0);
    const auto part = static_cast<std::size_t>(tasks_.part(rank, 0)) * around;
    const auto whole = static_cast<std::size_t>(tasks_.whole(rank, 0)) * around;
    in_elements = call_.joins() ? part : whole;
    out_elements = call_.joins() ? whole : part;
  }
  return {descriptor.in_data, descriptor.in_data == nullptr ? 0 : in_elements * dtype_size(dtype),
          descriptor.out_data,
          descriptor.out_data == nullptr ? 0 : out_elements * dtype_size(call_.out_dtype(dtype))};
}

// Whether the slots are sufficient to show that no buffers overlap. That is possible only if members bring
// one dense tensor.
bool Exchange::surely_apart(int member) const noexcept {
  if (call_.n != 1 || !call_.plain() || strided_) return false;
  const Buffers ours = buffers_of(member);
  if (ours.out_bytes == 0) return true;
  const bool whole = call_.traits().whole();
  const bool alike = whole && !call_.traits().prefixes;
  const TaskList::Ranks local = tasks_.local();
  bool one_for_all = alike && local.end - local.begin > 1;
  for (int p = local.begin; p < local.end && one_for_all; ++p)
    one_for_all = descriptors_[p]->out_data == ours.out;
  if (!whole && overlap(ours.in, ours.in_bytes, ours.out, ours.out_bytes)) return false;
  for (int p = local.begin; p < local.end; ++p) {
    if (p == member) continue;
    const Buffers theirs =
        whole ? Buffers{descriptors_[p]->in_data, ours.in_bytes, descriptors_[p]->out_data, ours.out_bytes}
              : buffers_of(p);
    if (theirs.out != nullptr && !one_for_all &&
        overlap(theirs.out, theirs.out_bytes, ours.out, ours.out_bytes))
      return false;
    const bool in_place = alike && theirs.in == ours.out && theirs.in_bytes == ours.out_bytes;
    if (theirs.in != nullptr && !in_place && overlap(theirs.in, theirs.in_bytes, ours.out, ours.out_bytes))
      return false;
  }
  return true;
}

// Whether an output of one member overlaps a buffer of a local peer in a way that would produce a wrong
// result.
bool Exchange::overlaps(const MemberNames& group, int member, ErrorRecord* out_why) const noexcept {
  const CallDescriptor& own = *descriptors_[member];
  if (own.out == nullptr) return false;
  const bool shares = call_.traits().alike();
  const bool whole = call_.traits().whole();
  const TaskList::Ranks local = tasks_.local();
  for (std::size_t t = 0; t < call_.n; ++t) {
    const Extent ours(own.out[t], strided_);
    bool one_for_all = shares && local.end - local.begin > 1;
    for (int p = local.begin; p < local.end && one_for_all; ++p) {
      one_for_all = descriptors_[p]->out != nullptr && descriptors_[p]->out[t].data == own.out[t].data;
    }
    int64_t before = 0;
    for (int p = 0; p < member && (call_.joins() || call_.cuts()); ++p) before += tasks_.part(p, t);
    if (own.in != nullptr && (call_.joins() || call_.cuts()) && misplaced(member, t, before)) {
      return refuse(out_why,
                    {group.name(member), "the part at its own position in the whole, or apart from it",
                     "in and out that overlap",
                     "use separate buffers, or place the part at its own position in the whole"},
                    "in and out of tensor %zu of %s %d overlap, and the part is not at its own position", t,
                    group.naming().word(), group.name(member).number());
    }
    before = 0;
    for (int p = 0; p < local.end; ++p) {
      const int64_t begin = before;
      if (call_.joins()) before += tasks_.part(p, t);
      if (p < local.begin || p == member) continue;
      const CallDescriptor& peer = *descriptors_[p];
      bool trips = false;
      if (peer.out != nullptr && !one_for_all) trips = ours.meets(Extent(peer.out[t], strided_));
      for (std::size_t j = 0; peer.in != nullptr && j < peer.contributions && !trips; ++j) {
        const Extent theirs(peer.in[j * call_.n + t], strided_);
        // An input and an output may have the same address, because each element is read before it is
        // written. A part may also be at its own place in an output that all members share.
        if (!theirs.meets(ours)) continue;
        trips = whole ? call_.traits().prefixes || theirs != ours
                      : !one_for_all || !call_.joins() || misplaced(p, t, begin);
      }
      if (!trips) continue;
      overlap_report(group, member, p, t, shares, out_why);
      return true;
    }
  }
  return false;
}

}  // namespace dist

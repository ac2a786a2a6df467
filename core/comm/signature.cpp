// SPDX-License-Identifier: Apache-2.0
#include "core/comm/signature.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "core/base/on_stack.hpp"
#include "core/base/tensor.hpp"
#include "core/base/text.hpp"

namespace dist {
namespace {

// Text in a fixed buffer, truncated at its end.
class Text {
 public:
  template <std::size_t N>
  explicit Text(char (&buffer)[N]) noexcept : Text(buffer, N) {}
  Text(char* buffer, std::size_t size) noexcept : buffer_(buffer), size_(size) { buffer_[0] = '\0'; }

  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) noexcept {
    if (used_ + 1 >= size_) return;
    va_list arguments;
    va_start(arguments, format);
    const int length = vwrite_marked(buffer_ + used_, size_ - used_, format, arguments);
    va_end(arguments);
    if (length <= 0) return;
    used_ += static_cast<std::size_t>(length);
    if (used_ < size_) return;
    // The text was truncated. A tag may contain any UTF-8, so an incomplete character at the end must be
    // removed.
    used_ = size_ - 1;
    std::size_t end = used_;
    while (end > 0 && (static_cast<unsigned char>(buffer_[end - 1]) & 0xC0u) == 0x80u) --end;
    if (end > 0 && static_cast<unsigned char>(buffer_[end - 1]) >= 0xC0u && !whole(end - 1))
      buffer_[end - 1] = '\0';
  }

  bool ends_with(char last) const noexcept { return used_ > 0 && buffer_[used_ - 1] == last; }

 private:
  // Whether the character that begins at `at` is complete.
  bool whole(std::size_t at) const noexcept {
    const auto lead = static_cast<unsigned char>(buffer_[at]);
    const std::size_t length = lead >= 0xF0u ? 4 : lead >= 0xE0u ? 3 : 2;
    return at + length <= used_;
  }

  char* buffer_;
  std::size_t size_;
  std::size_t used_ = 0;
};

MemberName name_of(const Evidence& evidence, std::size_t rank) noexcept {
  return evidence.naming.name(evidence.local_ranks == nullptr ? static_cast<int32_t>(rank)
                                                              : evidence.local_ranks[rank]);
}

// Builds the message's lines about members. Members with equal lines share one: "replicas 0, 2-7: ...".
class MemberLines {
 public:
  struct Member {
    std::size_t first_alike;  // the first member with the same line
    bool named;               // in the message, for a first member
  };
  // `room` has an element for each member.
  MemberLines(const Evidence& evidence, Member* room) noexcept : evidence_(evidence), members_(room) {
    for (std::size_t i = 0; i < evidence.signatures.size(); ++i) members_[i] = {find_first_alike(i), false};
  }

  // Prints the lines of all members that the message has not named yet.
  void print(Text& text) const noexcept {
    const auto n = evidence_.signatures.size();
    const char* separator = text.ends_with('.') ? " Details: " : ". Details: ";
    for (std::size_t i = 0; i < n; ++i) {
      if (first_alike(i) != i || members_[i].named) continue;
      text.add("%s", separator);
      ids(text, i, n);
      line(text, i);
      separator = "; ";
    }
  }

  // Formats "replica 3" or "replicas 3, 5-7": all members whose line equals that of `member`. print() omits
  // them.
  void name(Text& text, std::size_t member) noexcept {
    // The reason follows the names, so they must leave room for it.
    constexpr std::size_t kMostRanges = 8;
    const std::size_t first = first_alike(member);
    ids(text, first, kMostRanges);
    members_[first].named = true;
  }

 private:
  void ids(Text& text, std::size_t first, std::size_t most_ranges) const noexcept {
    const auto n = evidence_.signatures.size();
    std::size_t members = 0;
    for (std::size_t i = first; i < n; ++i) members += first_alike(i) == first;
    text.add(members == 1 ? "%s " : "%ss ", evidence_.naming.word());
    const char* separator = "";
    std::size_t ranges = 0;
    for (std::size_t i = first; i < n; ++i) {
      if (first_alike(i) != first) continue;
      if (ranges++ == most_ranges) {
        text.add(" and %zu more", members);
        return;
      }
      std::size_t last = i;
      while (last + 1 < n && first_alike(last + 1) == first &&
             name_of(evidence_, last + 1).number() == name_of(evidence_, last).number() + 1) {
        ++last;
      }
      text.add("%s%d", separator, name_of(evidence_, i).number());
      if (last > i) text.add("-%d", name_of(evidence_, last).number());
      separator = ", ";
      members -= last - i + 1;
      i = last;
    }
  }

  void line(Text& text, std::size_t member) const noexcept {
    const Signature* signature = evidence_.signatures[member];
    if (signature == nullptr) {
      text.add(": did not arrive");
      return;
    }
    char what[160];
    describe(*signature, what, sizeof what);
    text.add(": %s", what);
    if (signature->tag[0] != '\0') text.add(" (tag \"%s\")", signature->tag);
  }

  bool alike(std::size_t a, std::size_t b) const noexcept {
    const Signature* x = evidence_.signatures[a];
    const Signature* y = evidence_.signatures[b];
    if (x == nullptr || y == nullptr) return x == y;
    return x->digest == y->digest && x->returned == y->returned;
  }

  std::size_t first_alike(std::size_t member) const noexcept { return members_[member].first_alike; }
  std::size_t find_first_alike(std::size_t member) const noexcept {
    for (std::size_t i = 0; i < member; ++i) {
      if (alike(i, member)) return i;
    }
    return member;
  }

  const Evidence& evidence_;
  Member* const members_;
};

void add_shape(Text& text, const Signature& signature) noexcept {
  for (int i = 0; i < signature.ndim && i < Signature::kDims; ++i) {
    text.add(i == 0 ? "[%lld" : ", %lld", static_cast<long long>(signature.shape[i]));
  }
  text.add(signature.ndim > Signature::kDims ? ", ...]" : signature.ndim == 0 ? "[]" : "]");
}

bool left(const Signature* signature) noexcept {
  return signature != nullptr && signature->collective == Collective::kReturn;
}

// The member whose signature is the most frequent one among those that did not leave; a tie goes to the
// lowest id.
int majority_of(std::span<const Signature* const> signatures, std::size_t* out_followers) noexcept {
  int best = -1;
  std::size_t most = 0;
  for (std::size_t i = 0; i < signatures.size(); ++i) {
    if (signatures[i] == nullptr || left(signatures[i])) continue;
    std::size_t followers = 0;
    for (const Signature* other : signatures) {
      followers += other != nullptr && other->digest == signatures[i]->digest;
    }
    if (followers > most) {
      most = followers;
      best = static_cast<int>(i);
    }
  }
  *out_followers = most;
  return best;
}

// Ends the message with the report's hint, which states what to do.
void add_hint(Text& text, const ErrorRecord& error) noexcept { text.add(". %s", error.hint); }

void write_left(const Evidence& evidence, std::size_t member, MemberLines& lines, ErrorRecord& error,
                Text& text) noexcept {
  const Signature& signature = *evidence.signatures[member];
  error.code = DIST_ABORTED;
  const char* const word = evidence.naming.word();
  const ErrorRecord* failure = evidence.failures[member];
  if (signature.returned != DIST_OK) {
    text.add("%s %d failed with %s: %s", word, name_of(evidence, member).number(),
             status_name(signature.returned),
             failure != nullptr && failure->message[0] != '\0' ? failure->message : "it gave no reason");
    hint_to_mend(error, name_of(evidence, member));
  } else {
    lines.name(text, member);
    text.add(" returned early");
    Text(error.hint)
        .add("All %ss must call the same collectives; a %s without input takes part with an empty batch.",
             word, word);
    add_hint(text, error);
  }
  Text(error.received).add("returned %s", status_name(signature.returned));
}

void add_tag(Text text, const Signature& signature) noexcept {
  const bool tagged = signature.tag[0] != '\0';
  text.add("%s %s%s%s", called_name(signature), tagged ? "with tag \"" : "without a tag", signature.tag,
           tagged ? "\"" : "");
}

// Whether both call the same collective with one tensor, and only its dtype or shape differs.
bool only_tensor_differs(const Signature& a, const Signature& b) noexcept {
  return a.collective == b.collective && a.tensors == 1 && b.tensors == 1 &&
         (a.dtype != b.dtype || a.ndim != b.ndim || std::memcmp(a.shape, b.shape, sizeof a.shape) != 0) &&
         a.op == b.op && a.root == b.root && a.kind == b.kind && a.element_bytes == b.element_bytes &&
         a.axis == b.axis && a.contributes == b.contributes && a.weighted == b.weighted &&
         a.numerics == b.numerics && a.asynchronous == b.asynchronous && a.function == b.function &&
         std::strcmp(a.tag, b.tag) == 0;
}

void add_tensor(Text& text, const Signature& signature) noexcept {
  text.add("%s", dtype_name(static_cast<dist_dtype>(signature.dtype)));
  add_shape(text, signature);
}

// write_disagreement() and write_deadline() return the culprit's rank, or -1 if there is none.
int write_disagreement(const Evidence& evidence, MemberLines& lines, ErrorRecord& error,
                       Text& text) noexcept {
  const auto signatures = evidence.signatures;
  std::size_t followers = 0;
  const int reference = majority_of(signatures, &followers);
  const Signature& expected = *signatures[static_cast<std::size_t>(reference)];
  // If no digests differ, the caller has found a difference that the signatures do not contain.
  int culprit = reference;
  for (std::size_t i = signatures.size(); i-- > 0;) {
    if (signatures[i] != nullptr && signatures[i]->digest != expected.digest) culprit = static_cast<int>(i);
  }
  const Signature& received = *signatures[static_cast<std::size_t>(culprit)];
  error.code = DIST_INVALID_ARGUMENT;
  describe(expected, error.expected, sizeof error.expected);
  describe(received, error.received, sizeof error.received);
  if (std::strcmp(expected.tag, received.tag) != 0) {
    add_tag(Text(error.expected), expected);
    add_tag(Text(error.received), received);
  }
  const char* const word = evidence.naming.word();
  Text hint(error.hint);
  lines.name(text, static_cast<std::size_t>(culprit));
  if (std::strcmp(error.expected, error.received) == 0) {
    // The signatures differ in something that the texts leave out.
    Text(error.received)
        .add("%s, but with %s%s", error.expected, traits_of(expected.collective).beyond_words,
             expected.asynchronous == 2 ? ", or another bytes_per_pack" : "");
    text.add(" called %s than ", error.received);
    if (culprit != reference) {
      lines.name(text, static_cast<std::size_t>(reference));
    } else {
      text.add("another %s", word);
    }
  } else if (only_tensor_differs(expected, received)) {
    text.add(" passed ");
    add_tensor(text, received);
    text.add(", but ");
    lines.name(text, static_cast<std::size_t>(reference));
    text.add(" passed ");
    add_tensor(text, expected);
    hint.add("All %ss must pass the same dtype and shape", word);
    if (expected.axis >= 0 && expected.collective != Collective::kReduceScatter)
      hint.add(", except for the size along axis %d", expected.axis);
    hint.add(".");
  } else {
    text.add(" called %s, but ", error.received);
    lines.name(text, static_cast<std::size_t>(reference));
    text.add(" called %s", error.expected);
  }
  if (error.hint[0] == '\0')
    hint.add("All %ss must call the same collectives in the same order, with the same arguments.", word);
  add_hint(text, error);
  return culprit;
}

int write_deadline(const Evidence& evidence, MemberLines& lines, ErrorRecord& error, Text& text) noexcept {
  error.code = DIST_DEADLINE_EXCEEDED;
  const auto n = evidence.signatures.size();
  std::size_t missing = n;
  for (std::size_t i = n; i-- > 0;) {
    if (evidence.signatures[i] == nullptr) missing = i;
  }
  const bool of_run = evidence.trouble == Trouble::kRunDeadline;
  const DurationText waited(evidence.waited_ns);
  if (of_run) {
    text.add("the %s's deadline", evidence.naming.run());
    if (evidence.given_ns > 0) text.add(" of %s", DurationText(evidence.given_ns).text);
    text.add(" expired");
    if (evidence.waited_ns > 0) text.add(" after %s of waiting here", waited.text);
    if (missing < n) text.add(": ");
  }
  if (missing < n) {
    lines.name(text, missing);
    text.add(" did not arrive");
    if (!of_run) text.add(" within %s", waited.text);
    copy_text(error.received, "did not arrive");
  } else if (!of_run) {
    text.add("the deadline of %s expired", waited.text);
  }
  Text hint(error.hint);
  if (of_run) {
    hint.add("Find out what takes a %s longest, or give the %s a longer `timeout_ns`.",
             evidence.naming.word(), evidence.naming.run());
  } else {
    hint.add("Find out what delays that %s before this call, or give a longer `timeout_ns`.",
             evidence.naming.word());
  }
  // This is often the cause, so it precedes the hint.
  if (missing < n && *evidence.state != '\0') text.add(". Last known state: %s", evidence.state);
  add_hint(text, error);
  return missing < n ? static_cast<int>(missing) : -1;
}

// The first member that left its function with a failure; otherwise the first one that returned; otherwise
// -1.
int leaver_of(std::span<const Signature* const> signatures) noexcept {
  int returned = -1;
  for (std::size_t i = signatures.size(); i-- > 0;) {
    if (left(signatures[i])) returned = static_cast<int>(i);
  }
  for (std::size_t i = 0; i < signatures.size(); ++i) {
    if (left(signatures[i]) && signatures[i]->returned != DIST_OK) return static_cast<int>(i);
  }
  return returned;
}

// The most frequent signature of the members that arrived; if all have left, the signature for leaving.
const Signature* expected_of(const Evidence& evidence) noexcept {
  std::size_t followers = 0;
  if (const int best = majority_of(evidence.signatures, &followers); best >= 0) {
    return evidence.signatures[static_cast<std::size_t>(best)];
  }
  for (const Signature* signature : evidence.signatures) {
    if (signature != nullptr) return signature;
  }
  return nullptr;
}

// The common first part of all reports.
void open(const Evidence& evidence, ErrorRecord& error, Text& text) noexcept {
  error.of_all = true;
  error.sequence = evidence.sequence;
  error.group = std::max(evidence.group, 0);  // negative: not a group of the host
  if (const Signature* expected = expected_of(evidence)) {
    error.collective = static_cast<int32_t>(expected->collective);
    describe(*expected, error.expected, sizeof error.expected);
    copy_text(error.tag, expected->tag);
    text.add("%s #%lld", called_name(*expected), static_cast<long long>(evidence.sequence));
    if (expected->tag[0] != '\0') text.add(" (tag \"%s\")", expected->tag);
    if (evidence.group > 0) text.add(" of group %d", evidence.group);
    text.add(": ");
  }
}

}  // namespace

void hint_to_mend(ErrorRecord& error, const MemberName& failed) noexcept {
  Text(error.hint)
      .add("Fix the failure in that %s; `%s()` returns its status.", failed.word(),
           failed.logical_device < 0 ? "dist_run" : "dist_run_on_devices");
}

const char* called_name(const Signature& signature) noexcept {
  static constexpr const char* kMergers[] = {"merge_call", "replica_variable", "replica_assign",
                                             "replica_scatter", "replica_update"};
  return signature.collective == Collective::kMergeCall ? kMergers[signature.kind]
                                                        : collective_name(signature.collective);
}

const char* collective_name(Collective collective) noexcept {
  return collective_name(static_cast<int32_t>(collective));
}

void close_digest(Signature& signature, const char* tag) noexcept {
  uint64_t digest = mix(signature.digest, static_cast<uint64_t>(signature.collective));
  digest = mix(digest, static_cast<uint32_t>(signature.op) |
                           static_cast<uint64_t>(static_cast<uint32_t>(signature.root)) << 32);
  digest = mix(digest, static_cast<uint32_t>(signature.kind) |
                           static_cast<uint64_t>(static_cast<uint32_t>(signature.numerics)) << 32);
  digest = mix(
      digest, static_cast<uint64_t>(signature.tensors) ^ static_cast<uint64_t>(signature.asynchronous) << 62);
  if (tag != nullptr) {
    copy_shown(signature.tag, tag);
    digest = mix_text(digest, signature.tag);
  } else {
    signature.tag[0] = '\0';
  }
  signature.shared_digest = digest;
  signature.digest = mix(digest, reinterpret_cast<uintptr_t>(signature.function));
}

const Signature& departure() noexcept {
  static const Signature kDeparture = [] {
    Signature signature;
    signature.collective = Collective::kReturn;
    close_digest(signature, nullptr);
    return signature;
  }();
  return kDeparture;
}

void describe(const Signature& signature, char* out, std::size_t size) noexcept {
  Text text(out, size);
  if (signature.collective == Collective::kReturn) {
    text.add("returned %s", status_name(signature.returned));
    return;
  }
  if (signature.asynchronous == 1) text.add("asynchronous ");
  if (signature.asynchronous == 2) text.add("plan of ");
  text.add("%s", called_name(signature));
  if (signature.op != 0) text.add(" %s", op_name(static_cast<dist_reduce_op>(signature.op)));
  const int32_t numerics = DIST_NUMERICS_DEFAULT + signature.numerics;
  if (numerics == DIST_NUMERICS_REPRODUCIBLE) text.add(" (reproducible)");
  if (numerics == DIST_NUMERICS_TREE) text.add(" (as a tree)");
  if (traits_of(signature.collective).prefixes && signature.kind == DIST_SCAN_EXCLUSIVE)
    text.add(" (exclusive)");
  if (signature.root >= 0)
    text.add(traits_of(signature.collective).destinations == Ends::kRoot ? " to %d" : " from %d",
             signature.root);
  if (signature.tensors > 1) text.add(" of %lld tensors,", static_cast<long long>(signature.tensors));
  if (signature.tensors > 0) {
    text.add(" %s", dtype_name(static_cast<dist_dtype>(signature.dtype)));
    add_shape(text, signature);
  }
  if (signature.collective == Collective::kHaloExchange) {
    text.add(" of %s in a grid of ", dtype_name(static_cast<dist_dtype>(signature.dtype)));
    add_shape(text, signature);
  }
  if (signature.collective == Collective::kReshard) {
    text.add(" of ");
    add_shape(text, signature);
  }
  if (signature.tensors > 1) text.add(" ... (%lld elements)", static_cast<long long>(signature.elements));
  if (signature.axis >= 0) text.add(" along axis %d", signature.axis);
  if (signature.contributes) text.add(" with `options->contributions`");
  if (signature.weighted) text.add(" with weights");
  // The address of one of libdist's own functions would mean nothing to the host.
  const bool own = signature.collective == Collective::kMergeCall && signature.kind != 0;
  if (signature.function != nullptr && !own) text.add(" of function %p", signature.function);
  if (signature.element_bytes != 0) text.add(" of elements of %d bytes", signature.element_bytes);
}

void name_round(const Signature& signature, int64_t sequence, char* out, std::size_t size) noexcept {
  Text text(out, size);
  if (signature.asynchronous == 1) text.add("asynchronous ");
  if (signature.asynchronous == 2) text.add("plan of ");
  text.add("%s #%lld", called_name(signature), static_cast<long long>(sequence));
  if (signature.tag[0] != '\0') text.add(" (tag \"%s\")", signature.tag);
}

bool decidable(const Evidence& evidence) noexcept {
  for (const Signature* signature : evidence.signatures) {
    if (left(signature)) return true;
  }
  std::size_t followers = 0;
  majority_of(evidence.signatures, &followers);
  if (followers * 2 > evidence.signatures.size()) return true;
  for (const Signature* signature : evidence.signatures) {
    if (signature == nullptr) return false;
  }
  return true;
}

ErrorRecord opening(const Evidence& evidence) noexcept {
  ErrorRecord error;
  Text text(error.message);
  open(evidence, error, text);
  return error;
}

ErrorRecord diagnosis(const Evidence& evidence) noexcept {
  ErrorRecord error;
  int culprit = -1;
  Text text(error.message);
  MemberLines lines(evidence, DIST_ON_STACK(MemberLines::Member, evidence.signatures.size()));
  open(evidence, error, text);
  switch (evidence.trouble) {
    case Trouble::kCancelled:
      error.code = DIST_CANCELLED;
      if (evidence.reason != nullptr) {
        text.add("it was cancelled: %s", evidence.reason);
      } else {
        text.add("it was cancelled (`dist_strategy_cancel()` or `dist_work_cancel()`)");
      }
      copy_text(error.hint, "The strategy can run again.");
      break;
    case Trouble::kDeadline:
    case Trouble::kRunDeadline: culprit = write_deadline(evidence, lines, error, text); break;
    case Trouble::kNone:
    case Trouble::kDisagreement: {
      culprit = leaver_of(evidence.signatures);
      if (culprit >= 0) {
        write_left(evidence, static_cast<std::size_t>(culprit), lines, error, text);
      } else {
        culprit = write_disagreement(evidence, lines, error, text);
      }
      break;
    }
  }
  lines.print(text);
  if (culprit >= 0) error.culprit = name_of(evidence, static_cast<std::size_t>(culprit));
  return error;
}

}  // namespace dist
